"""Excel files for tests."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path


def workbook(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """Write an Excel file with one sheet; texts that begin with `#` are errors of formulas."""

    def cell(value: object) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, bool):
            return f'<c t="b"><v>{int(value)}</v></c>'
        if isinstance(value, int | float):
            return f"<c><v>{value}</v></c>"
        text = str(value)
        return f'<c t="e"><v>{text}</v></c>' if text[:1] == "#" else f'<c t="inlineStr"><is><t>{text}</t></is></c>'

    main, office = "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://schemas.openxmlformats.org/"
    links = f"{office}officeDocument/2006/relationships"
    sheet = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    head = f'<Relationships xmlns="{office}package/2006/relationships"><Relationship Id="r" Type="{links}'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{office}package/2006/content-types"></Types>',
        "_rels/.rels": f'{head}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{links}"><sheets><sheet name="S" sheetId="1" r:id="r"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'{head}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return path
