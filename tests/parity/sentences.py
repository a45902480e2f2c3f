"""Sentences of our own to train small tokenizers on: a grammar of scenes, spelled out in full."""

PEOPLE = [
    "a woman", "a man", "two children", "a small group of people", "the speaker", "an old fisherman",
    "a gymnast", "the diver", "a cook in a white apron", "three students", "a cyclist", "the goalkeeper",
    "a dancer", "my neighbour", "somebody", "the crowd", "a climber", "a teacher", "the audience",
]
ANIMALS = [
    "a brown dog", "a frog", "the grey cat", "a horse", "two birds", "a white rabbit", "an elephant",
    "a cockatoo", "a fish", "some ducks", "a small monkey",
]
ACTIONS = [
    "walks slowly along", "runs quickly past", "jumps over", "is sitting near", "stands in front of",
    "looks at", "points to", "turns around beside", "climbs onto", "falls from", "drives away from",
    "swims across", "is sleeping under", "explains", "draws", "opens", "closes", "holds", "throws",
    "catches", "pours coffee next to", "writes on", "plays with", "dances around", "dives into",
]
THINGS = [
    "the red car", "a wooden table", "the green door", "a blue umbrella", "an empty street", "the river",
    "a tall building", "the swimming pool", "a glass of water", "a yellow bicycle", "the old bridge",
    "a slide with a diagram", "the whiteboard", "an orange ball", "a black screen", "the kitchen window",
    "the balance beam", "a springboard", "the vault", "a snowy mountain", "the garden wall", "a laptop",
    "a large crowd", "the railway station", "a purple curtain", "the last page of the book",
]
PLACES = [
    "in the morning", "at night", "under a bright sun", "in heavy rain", "during the lecture", "in slow motion",
    "seen from above", "seen from behind", "with the camera moving left", "with the camera moving right",
    "while music plays", "for the second time", "in the background", "close to the camera", "at the beach",
    "in a dark room", "on the stage", "in winter", "before the audience claps", "after the break",
]
CHANGES = [
    "the same but with two and a half turns", "now with one somersault more", "backward instead of forward",
    "in the pike position", "in the tuck position", "without the twist", "show it with a stretched body",
    "the same scene at night", "replace the dog with a cat", "with more people", "from the other side",
    "make it faster", "without the last turn", "with a half turn on", "the same slide in another colour",
]
EXPLANATIONS = [
    "we split the text into tokens, and each token gets a number.",
    "the answer isn't obvious: don't worry, we'll come back to it later!",
    "what happens if the first step fails? nothing is lost.",
    "in chapter 3 there are 12 examples, 7 of them new.",
    "a vector is a list of numbers; two vectors that point the same way mean the same thing.",
    "the index keeps what is near together, so that a search is quick.",
    "every frame has a time, counted from the first one.",
    "it costs 1,250 coins, 99 cents and 0.5 percent of your patience.",
    "they're here; i've seen them, you'd better hurry.",
    "the cafe on the corner closes at 18:30 on weekdays.",
]


def sentences():
    """All combinations that a stride through the lists meets: a few thousand, always the same."""
    subjects = PEOPLE + ANIMALS
    for number in range(3000):
        subject = subjects[number % len(subjects)]
        action = ACTIONS[(number * 7 + number // 30) % len(ACTIONS)]
        thing = THINGS[(number * 11 + number // 25) % len(THINGS)]
        place = PLACES[(number * 3 + number // 26) % len(PLACES)]
        yield f"{subject} {action} {thing} {place}"
    for _ in range(20):
        yield from CHANGES
        yield from EXPLANATIONS
