"""Writes what ftfy and Python's html module make of texts: the goldens of encoders/src/text/clean, and its table of
HTML's named references.

    python -m venv venv && venv/bin/pip install ftfy==6.3.1 && venv/bin/python clean.py

    venv/bin/python clean.py --compare FOLDER_OF_TEST_DATA COUNT > strings.jsonl

The second form writes COUNT seeded strings instead: sentences of the test data and what breaks them, one JSON object a
line, to compare another implementation with. They hold text of others and are no part of the repository.
"""

import csv
import html
import json
import pathlib
import random
import sys

import ftfy
from ftfy import bad_codecs, chardata

HERE = pathlib.Path(__file__).parent
OUT = HERE / "data" / "clean.json"
NAMES = HERE.parent.parent / "encoders" / "src" / "text" / "clean" / "entities.txt"

bad_codecs.ok()
ENCODINGS = ["latin-1", *(f"sloppy-windows-{page}" for page in (1252, 1251, 1250, 1253, 1254, 1257))]
ENCODINGS += ["iso-8859-2", "mac_roman", "cp437"]

SENTENCES = [
    "a brown dog runs past the red car",
    "l’été à la mode, un “café crème” — naïve façade, cœur",
    "El niño está en la montaña ¿cómo? ¡olé! «sí»",
    "Größe, Straße, Übermut „Zitat“",
    "Съешь ещё этих мягких булок, да выпей чаю",
    "Ґудзик, їжак, Україна є",
    "Καλημέρα κόσμε, το ψάρι είναι φρέσκο",
    "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "Zażółć gęślą jaźń ŁÓDŹ",
    "güneşli bir gün, İstanbul'da ığdır",
    "Ķekava ļoti ātri ēd žagarus",
    "Árvíztűrő tükörfúrógép",
    "日本語のテキスト、東京タワー。",
    "一只狗在跑。",
    "한국어 문장입니다",
    "مرحبا بالعالم",
    "שלום עולם",
    "हिन्दी में एक वाक्य",
    "ภาษาไทยง่าย",
    "nice 👍🏽 video 🎉 👨‍👩‍👧 🏴󠁧󠁢󠁷󠁬󠁳󠁿",
    "5€ or £3, ½ cup ±2° ©2020 ™ §4 x² ≤ ∞ ≠ √2",
    "… ellipsis – dash • bullet ‘a’ ™",
    "│ box ═╬▀ ░",
]

QUOTES = ["‘a’ “b” ‚c‛ „d‟ ʼe´ ′f″ «g» ‹h›", "it’s", "“It’s ‘nested’”", "rock ’n’ roll", "don＇t ＂quote＂"]
LIGATURES = [
    "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06", "o\ufb03ce \ufb02at", "Ĳsland ĳs ŉ Ǆ ǅ ǆ Ǉ ǈ ǉ Ǌ ǋ ǌ Ǳ ǲ ǳ",
    "æ œ Æ Œ ﬓ ﭏ",
]
WIDTHS = ["ＬＯＵＤ　ＮＯＩＳＥＳ", "Ｕﾀｰﾝ ｶﾞ ﾊﾟ ﾞ", "１２３．５％ ￥￦￡￠￢￣￤", "ﾡﾢￂￇ ￨￩￪￫￬￭￮", "全角（括弧）！？：；～", "＆ａｍｐ；", "＜b＞ &amp;"]
WIDTHS += ["".join(map(chr, range(start, start + 32))) for start in range(0xFF01, 0xFFEF, 32)]
BREAKS = [
    "a\r\nb", "a\rb\r\r\nc", "a\u2028b\u2029c", "a\x85b", "a\n\nb\n", "\r", "\r\n", "a\x0bb\x0cc", "tab\there",
    "à\x85\r\n",
]
CONTROLS = [
    "".join(map(chr, range(32))), "a\x7fb\x00c", "".join(map(chr, range(0x80, 0xA0))), "x\x80 \x99s\x94",
    "\x81\x8d\x8f\x90\x9d",
]
CONTROLS += [
    "a\u200bb\u200cc\u200dd\u2060e", "\ufeffBOM\ufeff", "ï»¿BOM", "\u202aa\u202c\u200e\u200f", "a\u206ab\u206f",
    "\ufff9a\ufffab\ufffb\ufffc\ufffd",
]
CONTROLS += [
    "soft\u00adhyphen", "\U0001d173\U0001d17a", "\u180e\u061c", "na\x92ve \x93quoted\x94 \x96 \x85", "\x93日本\x94",
    "\xa0no\xa0break\xa0",
]
ESCAPES = [
    "\x1b[36;44mblue\x1b[0m", "\x1b[Kx\x1b[2J\x1b[1;1H", "\x1b[٣mx", "\x1b]0;title\x07x", "\x1bx\x1b[", "\x1b[3 m",
    "\x1b[３m", "&#27;[1mx", "\x1b&#91;1mx",
]
NORMAL = [
    "e\u0301 n\u0303 A\u030a o\u0328\u0304", "é ñ Å Å Ω K", "\u0301lone", "a\u0301\u0323\u0302", "\u1112\u1161\u11ab",
    "각\u11a8", "क़ ख़", "\u0344\u0340\u0341", "ﬁ\u0301", "x\n\u0301", "ｅ\u0301", "\u212b \u2126", "各 豈",
    "1\u20e3 ①Ⅳ㎏",
]
SCRIPTS = [
    "Ж ж Щ", "𝒥ohn ℋancock 𐐷 𓀀", "ɐɔıʇǝɯouoɥd", "ไทย မြန်မာ ខ្មែរ ქართული Հայերեն አማርኛ", "¯\\_(ツ)_/¯",
    "(ಠ_ಠ) (╯°□°)╯︵ ┻━┻", "😀👩🏾‍🚀🇫🇷❤️☺️", "Ünïcödé", "ø Ø ß ÿ þ ð", "ÀÉÎÕÜ", "À LA CARTE", "Ã", "Â", "Ã ", "Â a",
    "OÙ ÊTES-VOUS ?", "naïve café", "AHÅ™, the new sofa", "Lo ÃƒÂ¡ltimo", "ESSE CARA AI QUEM É¿",
    "SENSЕ - Oleg Tsedryk", "OK??:(   `¬´    ):", "‘à“ ×² ™®", "DÉ°", "œ x Œ.",
]
HALF = [
    "voilÃ le travail", "Ã la mode", "Ã quel point, Ã quele, Ã s vezes", "Ã  Ã", "Ã perturber la rÃ©flexion",
    "fÃ cil", "CÃ¡diz Â Â Â x", "Â£5 Â ", "aÂ\xa0b", "Å Å¡ Î Ð Ù Â", "â€ âš ï¸", "ã ã ‚ã„", "ð Ÿ˜€ ðŸ ˜ ðŸ˜ ",
]
LOSSY = [
    "â€œlike thisâ€�", "â€œlike thisâ€? and Ã?", "РїСЂРёРІРµС�", "Ð¿Ñ€Ð¸Ð²ÐµÑ�", "Ã� Ã? â�� ð��€ ð?˜€", "í\xa0½í¸�",
    "í\xa0�í¸‚ í\xa0?í¸‚", "a\x1ab Ã©", "� alone", "cafÃ© �",
]
PARTS = [
    "é and â€™ and Ã©", "日本 cafÃ© “ok”", "l’humanitÃ©", "“quotedâ€\x9d 日", "Ж Ã©Ã¨ ж", "ðŸ˜€ 😀", "Ã©\u4e00Ã¨Ã§",
    "ÒÐºÑÑ’ 日", "Å¡ÄÃ³ 中 Ä\x8d", "Ãƒ©中", "1Ã—2 中", "P&eacute;rez Ã©", "&Atilde;&copy;", "&#195;&#169;", "Ã&copy;",
    "ÃƒÂ©&amp;eacute;", "Ã©&lt;Ã©", "<b>Ã©</b> &eacute;", "Ã\x92\x92\x92\x92", "Ãƒƒƒƒ中", "№Ë№Е",
]
CESU = [
    "í\xa0½í¸‚", "í\xa0½í¸\x82 ok", "xÀ\x80y Ã©", "Ã©À", "Ã©À\n", "Ã©í", "Ã©í\xa0\x80í°\n", "í\xa0\x80 Ã©",
    "í•œêµ\xad", "Ã©í\n", "Ã©í\xa0\x80í°\nx",
]

ENTITIES = [
    "&amp;", "&lt;b&gt;", "&quot;a&quot; &#39;b&#039; &apos;c&apos;", "a &amp;amp; b", "&amp;amp;amp;lt;", "AT&T",
    "a & b", "a&b;", "&;", "&#;", "&#x;", "&#xg;", "&#12a;", "&", "&&amp;", "&&lt",
]
ENTITIES += [
    "&notit;", "&notin;", "&not", "&notin", "&ampx", "&amp=1", "&copy2020", "&copy 2020", "&AMP", "&AMP;", "&LT",
    "&GTx", "&nbsp", "a&nbsp;b", "&nbsp;a&nbsp;", "&hellip;&mdash;&rsquo;", "&ltb&gt", "&lt;&lt", "this&not that",
    "&centerdot;", "&cent;", "&centx",
]
ENTITIES += [
    "P&eacute;rez", "P&EACUTE;REZ", "BUNDESSTRA&SZLIG;E", "&ntilde; &Ntilde; &NTILDE; &nTILDE;",
    "&COPY; &REG; &QUOT;", "&NAPOS; &napos;", "&FRAC12;", "&YUML; &yuml;", "&IEXCL;", "&LEFTTEE; &Gt; &GG;",
    "&Jscr;ohn &HilbertSpace;ancock", "&checkmark;", "&CounterClockwiseContourIntegral;",
    "&CounterClockwiseContourIntegralx;", "&NotEqualTilde; &fjlig; &ThickSpace;x", "&Tab;&NewLine;x",
    "&zwj;&lrm;&shy;", "&semi; &num; &amp;semi;",
]
ENTITIES += [
    "&#65;&#x41;&#X41;", "&#65 &#x41 &#065;", "&#8217;&#8220;", "&#x1F600;", "&#x1f600 x", "&#128;&#130;&#x99;&#159;",
    "&#129;&#141;&#x90;", "&#0; &#x0;", "&#13;&#10;&#9;&#12;", "&#1;&#8;&#11;&#27;&#127;", "&#55296;&#xDFFF;",
    "&#xD83D;&#xDE00;", "&#1114111;&#x10FFFF;&#1114112;", "&#xFFFE;&#xFFFF;&#x1FFFF;&#xFDD0;&#xFDEF;&#xFDF0;",
    "&#99999999999999999999;", "&#xffffffffffffff", "&#00000000000000000000000065;", "&#59;", "&#38;amp;",
    "&#x26;lt;", "&#65;;", "&#6５;", "&é; &éamp;", "&eacute&eacute;", "&aacutexyz;", "&" + "a" * 40 + ";",
    "&amp" + "a" * 40 + ";",
]
HTML = [
    " <b>&amp;</b>", "&amp; < &lt;", "&amp;\n<\n&amp;", "<\n&eacute;\n&#233;", "&lt;b&gt;&amp;amp;",
    "a &lt; b\n&amp;lt;", "<b>it’s &ldquo;x&rdquo;</b>", "<a href=\"?a=1&amp;copy=2\">", "<&#128;>", "<P&EACUTE;REZ>",
    "＜ &amp;",
]
SPACES = [
    "", " ", "  two  spaces ", "\t\n a \n\t", "\u3000wide\u3000", "\u2003em\u2003", "\x1c\x1d\x1e\x1f a \x1f",
    "\x85a\x85", "\u200b a", "&#32;a&#160;", "&emsp;a&#x2028;",
]
LONG = [
    "a brown dog runs past. " * 30, "cafÃ© " * 60, "日本語" * 60, "&amp;" * 60, "&" + "amp;" * 40, "“a” " * 80,
    "Ａ" * 150,
]


def broken():
    """Each sentence, read in each encoding where that makes another text, and some of them twice or three times."""
    for at, sentence in enumerate(SENTENCES):
        yield sentence
        wrong = [sentence.encode().decode(encoding, "replace") for encoding in ENCODINGS]
        yield from [wrong[at % len(ENCODINGS)], wrong[1], wrong[(7 * at + 2) % len(ENCODINGS)]]
        again = ENCODINGS[at % 3]
        yield wrong[at % 3].encode().decode(again)[:200]
        yield wrong[at % len(ENCODINGS)].replace("\xa0", " ")
        yield wrong[1].lower()
        yield wrong[at % 3] + " 中 " + sentence[:8]
        yield sentence.encode().decode("cp1252", "replace")
    twice = "naïve – 😀"
    for _ in range(3):
        twice = twice.encode().decode("sloppy-windows-1252")
        yield twice


def texts():
    fixed = [QUOTES, LIGATURES, WIDTHS, BREAKS, CONTROLS, ESCAPES, NORMAL, SCRIPTS, HALF, LOSSY, PARTS, CESU]
    return list(dict.fromkeys([*sum(fixed, []), *broken(), *ENTITIES, *HTML, *SPACES, *LONG]))


def case(text):
    fixed = ftfy.fix_text(text)
    return {"text": text, "fixed": fixed, "cleaned": html.unescape(html.unescape(fixed)).strip()}


def names():
    """A line for each name of html.entities.html5, with the semicolon where it needs one."""
    for name, letters in sorted(html.entities.html5.items()):
        yield " ".join([name, *(f"{ord(letter):X}" for letter in letters)])


def sentences(folder):
    """Of subtitles, labels and captions."""
    for path in sorted(folder.glob("text/lectures/*.srt")):
        for block in path.read_text(encoding="utf-8", errors="replace").split("\n\n"):
            yield " ".join(block.split("\n")[2:]).strip()
    for path in sorted(folder.glob("text/labels/*.txt")):
        yield from path.read_text().split("\n")
    with open(folder / "text/covr/egocvr_annotations.csv") as file:
        for row in csv.reader(file):
            yield from [cell for cell in row if " " in cell and len(cell) > 12][:2]


def some_words(draw, text, change):
    words = text.split(" ")
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(words))
        words[at] = change(words[at])
    return " ".join(words)


def reference(draw):
    return draw.choice(
        [
            lambda: "&" + draw.choice(list(html.entities.html5)),
            lambda: "&" + draw.choice(list(html.entities.html5)).upper(),
            lambda: f"&#{draw.choice([draw.randint(0, 300), draw.randint(0, 1 << 21)])}" + draw.choice([";", "", "x;"]),
            lambda: f"&#{draw.choice('xX')}{draw.choice([draw.randint(0, 300), draw.randint(0, 1 << 21)]):x};",
            lambda: draw.choice(ENTITIES),
            lambda: "&" + "".join(draw.choice("abclmnopqtALTGx;#1") for _ in range(draw.randint(1, 34))),
        ]
    )()


def wide(word):
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in word)


def cesu(text):
    """UTF-8 of UTF-16, read as Latin-1."""
    units = text.encode("utf-16-le")
    units = "".join(chr(units[at] | units[at + 1] << 8) for at in range(0, len(units), 2))
    return units.encode("utf-8", "surrogatepass").decode("latin-1")


def ways(draw, letters):
    """What breaks a text, or needs cleaning, by name."""
    wrong = lambda text: text.encode().decode(draw.choice(ENCODINGS), "replace")
    controls = [*range(32), *range(0x7F, 0xA1), 0x200B, 0x206A, 0x2060, 0xFEFF, 0xFFF9, 0xFFFC, 0xFFFD, 0xAD]
    strict = ["cp1252", "cp1251", "cp1253"]
    noise = lambda most: "".join(draw.choice(letters) for _ in range(draw.randint(1, most)))
    words = lambda change: lambda text: some_words(draw, text, change)
    return {
        "mojibake": wrong,
        "mojibake twice": lambda text: wrong(wrong(text)),
        "mojibake in parts": words(wrong),
        "mojibake with spaces": lambda text: wrong(text).replace("\xa0", " "),
        "mojibake with losses": lambda text: text.encode().decode(draw.choice(strict), "replace"),
        "mojibake in small letters": lambda text: wrong(text).lower(),
        "mojibake of CESU-8": lambda text: cesu(text + " 😂") + draw.choice(["", "À\x80", "À\n", "í"]),
        "references": words(lambda word: word + reference(draw)),
        "references and tags": words(lambda word: draw.choice(["<b>", "\n<", "&lt;\n"]) + word + reference(draw)),
        "escaped": lambda text: html.escape(html.escape(text) + ' a & b < "c"'),
        "curly": lambda text: some_words(draw, text, lambda word: f"‘{word}”").replace("'", "’"),
        "full width": words(wide),
        "controls": words(lambda word: word + chr(draw.choice(controls)) + word),
        "line breaks": words(lambda word: word + draw.choice(BREAKS)),
        "terminal": words(lambda word: draw.choice(ESCAPES) + word + "\x1b[0m"),
        "noise": lambda text: noise(12),
        "noise in a text": words(lambda word: word + noise(5)),
        "other goldens": words(lambda word: draw.choice(GOLDENS) + " " + word),
    }


GOLDENS = [text for text in texts() if len(text) < 80]


def compare(folder, count):
    draw = random.Random(16)
    real = sorted(set(filter(None, sentences(folder))))
    draw.shuffle(real)
    pages = [bytes(range(0x80, 0x100)).decode(encoding) for encoding in chardata.CHARMAP_ENCODINGS]
    letters = sorted({*"aZ5 .,?_;&<'\n\r", *"".join(pages), *"".join(WIDTHS + LIGATURES + NORMAL)})
    kinds, seen = ways(draw, letters), set()
    while len(seen) < count:
        kind = draw.choice(list(kinds))
        text = draw.choice([draw.choice(real), draw.choice(SENTENCES), f"{draw.choice(real)} {draw.choice(SENTENCES)}"])
        kind, text = ("real", real[len(seen)]) if len(seen) < min(4000, count // 4) else (kind, kinds[kind](text))
        if text not in seen:
            seen.add(text)
            print(json.dumps({"kind": kind, **case(text), "unescaped": html.unescape(text)}))


def main():
    if sys.argv[1:2] == ["--compare"]:
        return compare(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
    NAMES.write_text("".join(f"{line}\n" for line in names()))
    goldens = {"ftfy": ftfy.__version__, "cases": [case(text) for text in texts()]}
    OUT.write_text(json.dumps(goldens, ensure_ascii=True, indent=0) + "\n")
    print(f"{len(goldens['cases'])} cases, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
