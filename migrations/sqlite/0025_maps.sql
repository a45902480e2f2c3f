-- The same as migrations/postgres/0025_maps.sql.

-- Maps: the spans of a level as points in the plane, one map for a space and level. seq: the newest change that it contains.
-- anchors: number of spans that were laid out; points: of all. Backups leave maps out: they can be made again.
CREATE TABLE maps (
    space      INTEGER NOT NULL,
    level      TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    anchors    INTEGER NOT NULL,
    points     INTEGER NOT NULL,
    made_at_ms INTEGER NOT NULL,
    PRIMARY KEY (space, level)
) STRICT;

-- The points of a map in order of the spans' keys, some thousands a row: for each the key (8 bytes), x and y (4 bytes each, f32),
-- little-endian. A key may be that of a deleted span.
CREATE TABLE map_parts (
    space    INTEGER NOT NULL,
    level    TEXT NOT NULL,
    last_key INTEGER NOT NULL,
    points   BLOB NOT NULL,
    PRIMARY KEY (space, level, last_key)
) STRICT;
