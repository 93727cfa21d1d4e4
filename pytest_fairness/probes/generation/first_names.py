"""First names that `anonymize: {names: true}` removes: the name lists of the package Faker, and additional names."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec

LISTS = (
    *("en_GB", "en_IE", "en_IN", "en_KE", "en_NG", "en_NZ", "en_PK", "en_US", "es_ES", "es_MX", "fr_FR", "ha_NG"),
    *("id_ID", "ig_NG", "it_IT", "ja_JP", "nl_NL", "pl_PL", "pt_BR", "sv_SE", "tr_TR", "tw_GH", "vi_VN", "yo_NG"),
    "zu_ZA",
)
"""Locales of Faker whose first names are used: their names have Latin letters and occur in English texts."""

ADDED = (
    # Names of correspondence studies (Bertrand and Mullainathan 2004) and of their successors.
    *("Darnell", "DeShawn", "Hakim", "Imani", "Lakisha", "Latonya", "Rasheed", "Shaniqua", "Tamika", "Tanisha"),
    *("Tremayne", "LaShawn", "LaTanya", "Jermaine", "Keyshawn", "Laquisha", "Marquis", "Shanice", "Tyrese"),
    # Romanised names.
    *("Chen", "Fang", "Hao", "Hui", "Jie", "Jin", "Jing", "Lei", "Li", "Lin", "Ling", "Mei", "Ming", "Min", "Qiang"),
    *("Wei", "Xiao", "Xin", "Yan", "Ying", "Yong", "Eun", "Hyun", "Jae", "Ji", "Joon", "Seo", "Soo", "Sung", "Yeon"),
    *("Aarav", "Aditya", "Ananya", "Anil", "Deepak", "Ishaan", "Lakshmi", "Neha", "Pooja", "Priyanka", "Rahul"),
    *("Raj", "Rajesh", "Sanjay", "Sunita", "Vikram", "Kenji", "Takeshi"),
    # Gender-neutral names, and short names that are also words.
    *("Avery", "River", "Rowan", "Sage", "Skyler", "Art", "Bud", "Chance", "Chuck", "Clay", "Cliff", "Fern", "Hank"),
    *("Heath", "Herb", "Homer", "Honor", "Kit", "Laurel", "Mae", "Miles", "Myrtle", "Norm", "Opal", "Pat", "Pearl"),
    *("Pete", "Rich", "Rob", "Rod", "Sterling", "Sunny", "Tucker", "Verity", "Vic", "Wade", "Will", "Woody"),
)
"""Frequent names that Faker's lists lack."""

OTHERS = frozenset(
    (
        *("basel", "danish", "erdogan", "georgia", "india", "israel", "jesus", "lincoln", "milan", "nazi", "nixon"),
        *("oman", "orlando", "paris", "philippine", "ramadan", "reagan", "roman", "tory", "trinidad", "virginia"),
        *("washington", "carolina", "brooklyn", "dakota", "mar", "sep", "christian", "indie", "kaiser", "nova"),
    )
)
"""Words in Faker's lists that are usually no first names even with a capital letter."""

ALSO_WORDS = frozenset(
    (
        *("abbey", "abel", "ale", "amber", "amor", "an", "angel", "apollo", "april", "archer", "art", "asher"),
        *("august", "aura", "aurora", "autumn", "avery", "basil", "beau", "bella", "bert", "bill", "blessing", "bo"),
        *("bob", "bruce", "bud", "canal", "carol", "carter", "chance", "charity", "chase", "che", "chi"),
        *("christie", "chuck", "clay", "clement", "cliff", "cody", "cole", "comfort", "conan", "cooper", "coral"),
        *("cory", "crystal", "dale", "dawn", "dean", "del", "demi", "destiny", "diamond", "dick", "dolores", "dom"),
        *("don", "drew", "duke", "earl", "eden", "edit", "else", "ester", "eve", "faith", "fancy", "fang", "fanny"),
        *("fay", "feline", "fern", "finn", "flora", "florence", "forum", "frank", "gail", "gala", "gene", "gil"),
        *("glen", "grace", "graham", "grant", "gun", "guy", "hank", "harmony", "harper", "harry", "harsh", "hazel"),
        *("heath", "heather", "henry", "herb", "holly", "homer", "honor", "hope", "hui", "hunter", "innocent", "iris"),
        *("ivy", "jack", "jade", "jail", "jasmine", "jasper", "jay", "jean", "jet", "ji", "jim", "jin", "job", "joy"),
        *("jules", "june", "junior", "kick", "kit", "lance", "laurel", "lavender", "li", "lily", "lin", "ling"),
        *("loot", "lot", "lotta", "love", "lucky", "luna", "mae", "magnus", "mare", "marina", "marine", "mark"),
        *("marquis", "mart", "mason", "mats", "max", "may", "melody", "mercedes", "mercy", "mick", "miles", "min"),
        *("ming", "misty", "my", "myrtle", "nail", "nana", "nick", "norm", "norma", "olive", "opal", "owe", "parker"),
        *("pastor", "pat", "patience", "peace", "pearl", "penny", "per", "pete", "phoenix", "pier", "piper", "pius"),
        *("polly", "poppy", "preston", "prima", "prudence", "puck", "purity", "queen", "raid", "randy", "raven"),
        *("ray", "rich", "rick", "river", "rob", "robin", "rocco", "rod", "rose", "rosemary", "ruby", "sad", "saga"),
        *("sage", "said", "sally", "sandy", "saul", "savannah", "scarlett", "server", "shay", "shea", "sherry"),
        *("sierra", "sol", "sole", "sonny", "soo", "spencer", "sterling", "sue", "summer", "sung", "sunny", "tan"),
        *("tanner", "taylor", "te", "ted", "theres", "ties", "tim", "titus", "toby", "tom", "toy", "trinity", "troy"),
        *("tucker", "tyler", "urban", "us", "valentine", "verity", "vi", "vic", "victor", "victoria", "vida"),
        *("viking", "viola", "violet", "wade", "wage", "warren", "wayne", "will", "willow", "winnie", "woody", "yan"),
        "yoga",
    )
)
"""Names that are also ordinary words.

At the beginning of a sentence, the capital letter does not show whether the name or the word is meant.
"""


def available() -> bool:
    """Return whether the package Faker, which holds the lists, is installed."""
    return find_spec("faker") is not None


@cache
def packaged() -> tuple[str, ...]:
    """Return the first names in Faker's lists and in `ADDED`, without ordinary words (`OTHERS`), sorted.

    The names have the form that `name_forms` returns. Faker must be installed.
    """
    found: set[str] = set()
    for locale in LISTS:
        provider = import_module(f"faker.providers.person.{locale}").Provider
        # Attributes are lists or dicts of names; methods that draw a name have similar names.
        listed = [getattr(provider, attribute) for attribute in dir(provider) if attribute.startswith("first_")]
        found.update(name for names in listed if not callable(names) for name in names if isinstance(name, str))
    return tuple(sorted(name_forms([*found, *ADDED]) - OTHERS))


@cache
def digest() -> str:
    """Return a digest of the packaged names, which changes if a new version of Faker changes its lists."""
    return sha256("\n".join(packaged()).encode()).hexdigest()[:16]


def name_forms(names: Iterable[str]) -> frozenset[str]:
    """Return each word of the names that has two or more letters, in lower case, both with and without accents."""
    words = {
        word
        for name in names
        for word in unicodedata.normalize("NFKC", name).casefold().replace("-", " ").split()
        if sum(character.isalpha() for character in word) > 1
    }
    return frozenset(words | {_without_accents(word) for word in words})


def _without_accents(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
