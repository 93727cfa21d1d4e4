// Print the violations that axe-core finds in a page: `node axe.cjs BROWSER PAGE`, as JSON.
const puppeteer = require("puppeteer-core");

(async () => {
  const [browserPath, page] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
  const found = [];
  for (const width of [1280, 390]) {
    for (const scheme of ["light", "dark"]) {
      const tab = await browser.newPage();
      await tab.setBypassCSP(true); // for axe alone
      await tab.setViewport({ width, height: 900 });
      await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await tab.goto(page);
      await tab.evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = true)));
      await tab.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
      const { violations } = await tab.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
      found.push(...violations.map(({ id, nodes }) => [width, scheme, id, nodes[0].html]));
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
      if (wide > width) found.push([width, scheme, "wider than the window", wide]);
      await tab.close();
    }
  }
  await browser.close();
  console.log(JSON.stringify(found));
})();
