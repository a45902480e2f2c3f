"""Writes what transformers' EnglishTextNormalizer makes of texts: the goldens of research/src/eval/speech, and its list of
British and American spelling.

    python -m venv venv && venv/bin/pip install transformers==5.23.0 whisper-normalizer==0.1.15 && venv/bin/python english.py

The list is OpenAI's (MIT); the second package carries it.
"""

import importlib.util
import json
import pathlib
import random

from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

HERE = pathlib.Path(__file__).parent
OUT = HERE / "data" / "english.json"
LIST = HERE.parent.parent / "research" / "src" / "eval" / "speech" / "spelling.txt"
TEXTS = [
    "", " ", "Hello, World!", "Mr. Smith's dive -- he'd been there; he's gone.", "Mrs. O'Neil can't, won't and shan't.",
    "Let's go, y'all! I'ma dive. She's got it, they've got it, I'm gonna win.", "ain't it so, ma'am?",
    "[laughter] We'll see (applause) what <i>they'd</i> do.", "Um, uh, hmm, mm: the um-brella.",
    "St. John, Dr. Who, Prof. X, Capt. Hook, Gov. Y, Gen. Z, Sen. A, Rep. B, Pres. C, Rev. D", "Jr. and Sr., Esq., Lt. Col. and Asst.",
    "The colour of the armour in the centre was analysed at the theatre.", "organise, realise; travelled, modelling; grey catalogue",
    "café naïve Ærøskøbing Œuvre Straße Łódź þorn đak", "½ of it, 10 ² and ３ ４", "e-mail, twenty-one, forty-two-year-old",
    "one", "two", "ones and twos", "one oh one", "oh seven", "double oh seven", "triple five", "double check", "double nine nine",
    "twenty one", "twenty one hundred", "nineteen eighty four", "nineteen oh five", "two thousand and twenty four", "two thousand twenty",
    "one hundred and one", "one hundred and fifty thousand two hundred and six", "a hundred and a half", "two and a half million",
    "two and a half turns", "five and a half", "and a half", "dogs and a half", "a day and a half and a half",
    "three point one four one five", "point five", "point of view", "zero point zero one", "one point two million", "1.2 million", "1.25 million", "1.234567891 million",
    "one point twenty five", "ten point", "192.168.0.1", "one nine two point one six eight point zero point one",
    "first second third fourth fifth sixth eighth ninth twelfth twentieth twenty first", "thirty second", "hundredth thousandth",
    "two hundredth", "one millionth", "nineties", "the nineteen nineties", "the 1960s", "the 90's", "32nd 3 rd 274 th", "sixes and sevens",
    "twenties thirties", "millions of dollars", "two millions", "twenty dollars", "$20 million", "$5", "5 dollars and 7 cents", "$2 and 7 cents",
    "two dollars and seven cents", "two dollars seven", "seven cents", "zero dollars and seven cents", "$0.07", "£3.50", "twenty pounds", "ten euros 50 cents",
    "50 percent", "fifty percent", "50%", "fifty per cent", "fifty per second", "per cent", "percent", "100 % sure", "five % of", "% alone",
    "minus five", "minus", "minus the dog", "negative twenty", "plus one", "positive 3", "positive thinking", "minus $5",
    "1,000,000", "1,2,3", "12,345.67", "3.0", "3.10", "007", "0.5", "0", "00", "1 1 1", "1 2 3", "12 34", "one two three", "one twenty three", "twenty twelve",
    "twenty thirty", "five hundred twenty", "five twenty hundred", "one thousand thousand", "zero million", "oh million", "hundred", "a hundred", "thousand one",
    "3rd", "b2b", "mp3", "4k", "a1b2", "covid19", "x1s", "2s", "20 s", "st 5", "and five", "two and five", "hundred and", "hundred and dog", "point 5",
    "$", "a $ b", "a. b .c", "3. Next", "end.", "5.", "Wait... what?", "$.50", "¢5 and €6", "€6 ¢50", "$1 ¢1", "$12 and ¢9 more",
    "The score is ten to nine, 10-9.", "In 2024, 3 divers scored 9.5, nine point five and 9 and a half.", "At 5:30 p.m. on May 3rd",
    "“Quoted” ‘single’ 'tis the season; rock 'n' roll", "He said 'twas so, didn't he?", "I'd've gone; who'd done it?", "it's been", "I'd been",
    "favourite neighbour's behaviour, honoured", "licence practise programme tyre kerb", "tabs\tand\nlines",
]  # fmt: skip
WORDS = """zero oh o one two three five nine ten eleven fifteen nineteen twenty thirty forty ninety hundred thousand million and point
double triple minus plus dollars pounds cents cent percent per first second third fifth ninth twelfth tens twenties fiftieth hundreds
thousandth 0 1 2 5 10 12 20 100 250 1000 1.5 0.25 3.0 2.50 $5 $2.50 €20 ¢7 £3 5% the dog ones two- half a""".split()


def listed():
    """The spelling, from a package that is found but not imported."""
    folder = pathlib.Path(importlib.util.find_spec("whisper_normalizer").submodule_search_locations[0])
    return json.loads((folder / "normalizers" / "english.json").read_text())


def main():
    spelling = listed()
    LIST.write_text("".join(f"{british} {american}\n" for british, american in spelling.items()))
    made = random.Random(22)
    texts = TEXTS + [" ".join(made.choices(WORDS, k=made.randint(2, 7))) for _ in range(400)]
    normalise = EnglishTextNormalizer(spelling)
    # White space at the ends says nothing.
    goldens = [(text, " ".join(normalise(text).split())) for text in texts]
    OUT.write_text(json.dumps(goldens, ensure_ascii=False, indent=0))


main()
