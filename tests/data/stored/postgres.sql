SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public._sqlx_migrations (
    version bigint NOT NULL,
    description text NOT NULL,
    installed_on timestamp with time zone DEFAULT now() NOT NULL,
    success boolean NOT NULL,
    checksum bytea NOT NULL,
    execution_time bigint NOT NULL
);
CREATE TABLE public.activations (
    kind text NOT NULL,
    space bigint NOT NULL,
    named text,
    CONSTRAINT activations_kind_check CHECK ((kind = ANY (ARRAY['text'::text, 'clip'::text, 'composed'::text, 'spoken'::text])))
);
CREATE TABLE public.changes (
    seq bigint NOT NULL,
    op text NOT NULL,
    span bigint NOT NULL,
    space bigint NOT NULL,
    level text NOT NULL,
    CONSTRAINT changes_op_check CHECK ((op = ANY (ARRAY['insert'::text, 'delete'::text])))
);
ALTER TABLE public.changes ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.changes_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.cue_terms (
    term text NOT NULL COLLATE pg_catalog."C",
    cues bigint NOT NULL
);
CREATE TABLE public.cues (
    key bigint NOT NULL,
    id uuid NOT NULL,
    track bigint NOT NULL,
    place bigint NOT NULL,
    start_ms bigint NOT NULL,
    end_ms bigint NOT NULL,
    text text NOT NULL,
    words text NOT NULL,
    lexemes tsvector GENERATED ALWAYS AS (array_to_tsvector(string_to_array(words, ' '::text))) STORED NOT NULL,
    CONSTRAINT cues_check CHECK ((end_ms > start_ms))
);
ALTER TABLE public.cues ALTER COLUMN key ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.cues_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.embeddings (
    space bigint NOT NULL,
    span bigint NOT NULL,
    unit bytea NOT NULL,
    norm double precision NOT NULL
);
CREATE TABLE public.idempotency_keys (
    key text NOT NULL,
    request_hash text NOT NULL,
    video uuid NOT NULL,
    job uuid,
    duplicate boolean NOT NULL,
    created_at_ms bigint NOT NULL
);
CREATE TABLE public.jobs (
    id uuid NOT NULL,
    kind text NOT NULL,
    video uuid NOT NULL,
    state text NOT NULL,
    stage text DEFAULT ''::text NOT NULL,
    fraction double precision DEFAULT 0 NOT NULL,
    frames_done bigint DEFAULT 0 NOT NULL,
    frames_total bigint,
    eta_s double precision,
    attempts bigint DEFAULT 0 NOT NULL,
    reason text,
    worker uuid,
    lease_token uuid,
    lease_until_ms bigint,
    created_at_ms bigint NOT NULL,
    updated_at_ms bigint NOT NULL,
    segmentation text,
    CONSTRAINT jobs_kind_check CHECK ((kind = ANY (ARRAY['ingest'::text, 'fill'::text]))),
    CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE TABLE public.passages (
    span bigint NOT NULL,
    track bigint NOT NULL,
    text text NOT NULL
);
CREATE TABLE public.spaces (
    key bigint NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    model text NOT NULL,
    dim bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    added boolean DEFAULT false NOT NULL,
    CONSTRAINT spaces_dim_check CHECK ((dim > 0))
);
ALTER TABLE public.spaces ALTER COLUMN key ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.spaces_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 4294967295
    CACHE 1
);
CREATE TABLE public.span_attributes (
    span bigint NOT NULL,
    path bytea NOT NULL,
    kind text NOT NULL,
    number double precision,
    text bytea,
    CONSTRAINT span_attributes_kind_check CHECK ((kind = ANY (ARRAY['null'::text, 'boolean'::text, 'number'::text, 'string'::text, 'container'::text])))
);
CREATE TABLE public.spans (
    key bigint NOT NULL,
    id uuid NOT NULL,
    video uuid NOT NULL,
    level text NOT NULL,
    given boolean NOT NULL,
    start_ms bigint NOT NULL,
    end_ms bigint NOT NULL,
    metadata text NOT NULL,
    CONSTRAINT spans_check CHECK ((end_ms > start_ms)),
    CONSTRAINT spans_level_check CHECK ((level = ANY (ARRAY['video'::text, 'clip'::text, 'moment'::text, 'passage'::text]))),
    CONSTRAINT spans_start_ms_check CHECK ((start_ms >= 0))
);
ALTER TABLE public.spans ALTER COLUMN key ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.spans_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 4294967295
    CACHE 1
);
CREATE TABLE public.tracks (
    key bigint NOT NULL,
    video uuid NOT NULL,
    kind text NOT NULL,
    language text NOT NULL COLLATE pg_catalog."C",
    provenance text NOT NULL,
    warnings text NOT NULL,
    CONSTRAINT tracks_kind_check CHECK ((kind = ANY (ARRAY['speech'::text, 'caption'::text, 'ocr'::text])))
);
ALTER TABLE public.tracks ALTER COLUMN key ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.tracks_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.video_attributes (
    video uuid NOT NULL,
    path bytea NOT NULL,
    kind text NOT NULL,
    number double precision,
    text bytea,
    CONSTRAINT video_attributes_kind_check CHECK ((kind = ANY (ARRAY['null'::text, 'boolean'::text, 'number'::text, 'string'::text, 'container'::text])))
);
CREATE TABLE public.videos (
    id uuid NOT NULL,
    content_hash text NOT NULL,
    file text NOT NULL,
    file_name text NOT NULL,
    bytes bigint NOT NULL,
    title text NOT NULL COLLATE pg_catalog."C",
    metadata text NOT NULL,
    recorded_at text,
    recorded_at_ms bigint,
    created_at_ms bigint NOT NULL,
    state text NOT NULL,
    segmentation text NOT NULL,
    facts text,
    duration_ms bigint,
    media_offset_ms bigint,
    warnings text NOT NULL,
    CONSTRAINT videos_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'ready'::text, 'failed'::text])))
);
INSERT INTO public._sqlx_migrations VALUES
	(1, 'catalog', '2026-11-22 13:40:14.021785+00', true, '\x97576194e8c769e0a8cfd9fbf6aaa1481c4f4086d5d634c4a909074d037c3a82c1878c3f958030302937f0101ec7d4f6', 143258533),
	(2, 'cues', '2026-11-22 13:40:14.168913+00', true, '\xc447fee537e6a7fbc7af8dd6866579aba00a121084d97b1f50751c2e58a383bd9c5ba104f81165406752a76c8db523fb', 63916372),
	(3, 'resegment', '2026-11-22 13:40:14.238084+00', true, '\x05923f43310c3def68df7896c2c4ae126acfe978ed77c1ad3685e96de2c0ae4067f17e8dc0af7b6af72528bcafb939a8', 4248583),
	(4, 'spaces', '2026-11-22 13:40:14.244899+00', true, '\xf2f9aa19ba94aef1a5a7c59e5b9b7a9ad50f76e274927af16135b5b7ac92acdff4b1a464afca3d4378a7b6fe1c0a77f8', 20130993);
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES
	(1, 'insert', 1, 1, 'video'),
	(2, 'insert', 2, 1, 'clip'),
	(3, 'insert', 3, 1, 'clip'),
	(4, 'insert', 4, 1, 'clip'),
	(5, 'insert', 6, 1, 'video'),
	(6, 'insert', 7, 1, 'clip'),
	(7, 'insert', 8, 1, 'clip'),
	(8, 'insert', 9, 1, 'clip'),
	(9, 'insert', 10, 1, 'clip'),
	(10, 'insert', 11, 1, 'video'),
	(11, 'insert', 12, 1, 'clip'),
	(12, 'insert', 13, 1, 'clip'),
	(13, 'insert', 14, 1, 'clip'),
	(14, 'insert', 17, 1, 'video'),
	(15, 'insert', 15, 1, 'clip'),
	(16, 'insert', 16, 1, 'clip'),
	(17, 'insert', 18, 1, 'video'),
	(18, 'insert', 19, 1, 'clip'),
	(19, 'insert', 21, 1, 'video'),
	(20, 'insert', 22, 1, 'clip'),
	(21, 'insert', 23, 1, 'clip'),
	(22, 'insert', 24, 1, 'clip'),
	(23, 'insert', 25, 1, 'video'),
	(24, 'insert', 26, 1, 'clip'),
	(25, 'insert', 27, 1, 'clip'),
	(26, 'insert', 28, 1, 'clip'),
	(27, 'insert', 29, 1, 'clip'),
	(28, 'insert', 32, 1, 'video'),
	(29, 'insert', 30, 1, 'clip'),
	(30, 'insert', 31, 1, 'clip'),
	(31, 'delete', 18, 1, 'video'),
	(32, 'delete', 19, 1, 'clip'),
	(33, 'insert', 33, 1, 'video'),
	(34, 'insert', 34, 1, 'clip');
INSERT INTO public.cue_terms VALUES
	('', 6),
	('a', 4),
	('and', 2),
	('clean', 2),
	('diver', 2),
	('entry', 2),
	('half', 2),
	('into', 2),
	('leaves', 2),
	('platform', 2),
	('the', 4),
	('twists', 2),
	('two', 2),
	('water', 2);
INSERT INTO public.cues OVERRIDING SYSTEM VALUE VALUES
	(1, '01a2037c-68e3-7328-ad2c-44033725a8c3', 1, 0, 200, 1400, 'The diver leaves the platform.', 'the diver leaves the platform', DEFAULT),
	(2, '01a2037c-68e3-7328-ad2c-44042be5f93c', 1, 1, 1600, 2400, 'Two and a half twists.', 'two and a half twists', DEFAULT),
	(3, '01a2037c-68e3-7328-ad2c-4405d9d8a60a', 1, 2, 3600, 5200, 'A clean entry into the water.', 'a clean entry into the water', DEFAULT),
	(4, '01a2037c-7483-716b-8381-05d41307c377', 2, 0, 200, 1400, 'The diver leaves the platform.', 'the diver leaves the platform', DEFAULT),
	(5, '01a2037c-7483-716b-8381-05d50f7f3631', 2, 1, 1600, 2400, 'Two and a half twists.', 'two and a half twists', DEFAULT),
	(6, '01a2037c-7483-716b-8381-05d60d0a4281', 2, 2, 3600, 5200, 'A clean entry into the water.', 'a clean entry into the water', DEFAULT);
INSERT INTO public.embeddings VALUES
	(1, 1, '\x4a4d6f3d8b32b83d870a13bea90e313d33333e3df52c7dbd808e32be10f887bdefea39bd9c4ec43c2ed9933e0fc14dbd00002a3ec76eb8bd1fe4dd3cb06388bd94243e3ee56ff5bb35fb343e19f7623d7e3967bcc74304be21ff733e8639b2bdb3f4e6bdb0cf293d0007593e52d605bdceebeebd84784a3dd486073de22c063ec74cd8bd2990d7bd0f9befbdedd36dbe5ffa8cbdfe4d8dbd8585d6bd0ceb693ea441633d346be1bd19ace8bcd39a4abd69d8e3bcac9e44bef19307bdc578f03d7f366dbd6e3d10befbd40fbd6465af3d9b68803a428fee3c84543abe70a238bd5bff07bcc1ecb6befa939b3dcdcf9ebc38e1293e0ab383bd8254863e485cfe3d', 0.6401100158691406),
	(1, 2, '\x3d6ee63da8eadd3dddf6debdbb50ffbcd49e7bbd93d56f3d118776be03afdcbd8b68e1bdd6e3183ecd11973e475ee63cf96ea3bdd70129be6d49163eaab5573dc72fd93dbab199bda9a01b3e10fa0d3ee52bb23dac1c86becbc20e3e9dc1ecbd838b0fbdf626a73ba308703eb01b80bb321ba43d2e30b9bc2c1d973dc487bdbd1e0de2bc02ac52bdff14d8bd60d10abeef2e223d41bd4ebec5138e3d925b723e96982d3ef14646beb5aba93c5c6c3f3e8024edbdb38b99bd78978a3d65e7f43d60ac0bbd7ed8e7bded0e30bec8664a3d2ce30abeaced74bdaf516bbdfe6319bd1ded09bcc09070beebb4a8bc59c10d3d0e4153bd6a6d3cbe74c5fd3d23c071bd', 0.9719739556312561),
	(1, 3, '\xb21fee3dda60b73de2d7ddbd0ee73a3ddb84c13df423b2bdb84f69bd8c69ce3d48857dbd70ec1fbea462573d22beaabda26fb43ef03562bcddad80bee855e4bd379b083e88bdeb3d0b83e3bbe95da3bd889dd8bdc5bf603c37f2c13d1eaa543d8344e43b15d2da3dd61ed7bcca6a0a3d5b2563be17b84e3e09c28b3d7b10433d765dd5bdc55113becec16e3d1fc13cbee7ddc4bdc367ad3b40ec23bd0814493e2e260bbee9e539bdd63998bd306a2ebef0e4093e500861bd13ef23be4bc2e63de693d63dcda681bde1beb73d895f213ea971913d5d967fbd6f5a59be2ff2dc3b5008ac3b9712b7be75a39d3dfc1401be36321c3d1e857fbdeb632a3e7334be3d', 1),
	(1, 4, '\xd707ebbda088b7bcfd497fbda7348c3daa5e613d519eb7bd85db35bd97f6ffbd7949a93d3f7b6c3da6e15e3e678327bd2323363d8b4dab3a1576263e12058cbdf1d2f83d48516abd1dc14d3e990a553deb4dc3bb285bedbbc4876b3ef700ddbd2a4444bef26305bda2cb543e6824c0bd64eea5bdfc0eb0bd81549ebddf40983edac894bd750309bc11e33abe019306be04749abd1830723d40c46cbeae3d4b3c18e4a03d9a29b83ca889b6b9275bdcbd087a9cbdfd9079be37ddfe3c6b0f63bbe1683dbee74ac9bda819253cfd8b2abd97e4813d8ec7363e1a80a8bd56cc6bbd7a9857bced8dcfbd8f3cb83dceb0643d7039ab3ef7f3f33d38c8603ed249523e', 0.9884969592094421),
	(1, 6, '\x39c3ebbd0d51ed3d6d9d58be25a08c3b8533a5bd9db5b4bb05f9cfbdc2cc903c3dcb92bdc5d4e43b572d323e73c76bbe2e49c4bdb13331be32b25e3ecca2163d7041bd3c0be97f3d51d6b4bdb2244e3dce7d653d1ee942be911b423e0c0e75bd54ce90beb91d953d4159b73c9610a33d0ab42cbbae8216be780ef23c978b603dd52158be87dd59be95beecbd31625abe5b5c5a3d84c30a3db718c73d9316193e13055b3ec84524beda74953ca1c9eebd7278f1bd1a0e29be413a323d79a3be3d9a6e4d3cf04ea4bcb4e316be49b8ec3d80a48cbb65aa1c3ee22e413b8d1e82bd78dbfdbd120307be9c67583efb541d3ec60e753d91bdc43c09321d3eb14dd13d', 0.8412092924118042),
	(1, 7, '\x70bd393b3518d73c12a941beb89f78bdb2f8adbdc55bde3cd0453ebe552b11bd350711be778fe3bcbf7ea93ee05128be65a2cebcccf821be1934133e0614933d66dfb83d48781b3d903fdd3dcdef143db51d1c3dfce947be72f0383e591f1abece2d38be5ee20abd62554a3e569b00bde85b653d957c7fbd469f0a3db41c663dc7f20abe07b347be2edc2fbe485955beab5923bc281e83bc80ca71bd8ac0473e31635b3e7d6640be9c26de3da89fcb3b042a50bdcc8264be200a673c9255e23d6f1f17bc0e1984bd3ac733be82c4b03ddf893fbd65761a3d794588bb7aae88bc14e3cfbd494921beac0b523e9a520d3e360f793d28be93bc129e2b3e197b083d', 1),
	(1, 8, '\x7b6797bd1193af3d833c58be8cb3a9bc470fafbd4f94e23b278d0dbe44e610bb3a20d0bdf579cbbb6a82773e15e45abe3fe793bd124932be58324a3e5f2a543d26004d3d85f9623d9cb180bc9420403ddc0b523d71854cbecb33463e9057c7bda11182be1bab0c3d21a3ba3d00c9223d1867a33ca5b1f5bdc487043d8b8a6b3dc7bf42be60625bbec84e11be2f0a61befe09fd3cd424823cbef8253da834313e19bd633e9da035be69df5c3d35ab96bdfeb3c5bdcbbc46befd9e0a3de8fdd33d3fd0953b5ceb1bbd9f0428be65cede3dd39aabbc482bea3dc839953962fc43bdf200f6bd038a16be7a6c5e3e754e1d3e5527803dd9be0d3c6dfb283e9fe3a23d', 0.8602957725524902),
	(1, 9, '\x2a3e49becdba2c3e26c82abec2168b3db6ff4fbd192815bd63c1753c6b7d853d1484ac3c50e6213d18ef1cbda06164be1b510bbef22408be0a79633e65e022bc279652bd8493893da25e83be34d9453d8205663de80000be2a9f0d3e2c444c3daa8a97becc24203e53c223beb151293e176877bdec5c3dbe8820823c90a9133dafa860be4bda26be7e4dbabcd70c1abe481bcc3d6580953d56e9633ee02c673d3b21153ed8f5a7bdda4a9fbd6b424fbec91917bee7a85fbdf40a723d89c23c3d8391f83c36f4fb3cc82994bdd57ddd3d3a12223d10f7603e12c0153cc2cdb8bd4f3bdbbde9a883bd59101a3e83c5f63d082e233dad6d6f3d4aadb93db4f10d3e', 1),
	(1, 10, '\x2a3e49becdba2c3e26c82abec2168b3db6ff4fbd192815bd63c1753c6b7d853d1484ac3c50e6213d18ef1cbda06164be1b510bbef22408be0a79633e65e022bc279652bd8493893da25e83be34d9453d8205663de80000be2a9f0d3e2c444c3daa8a97becc24203e53c223beb151293e176877bdec5c3dbe8820823c90a9133dafa860be4bda26be7e4dbabcd70c1abe481bcc3d6580953d56e9633ee02c673d3b21153ed8f5a7bdda4a9fbd6b424fbec91917bee7a85fbdf40a723d89c23c3d8391f83c36f4fb3cc82994bdd57ddd3d3a12223d10f7603e12c0153cc2cdb8bd4f3bdbbde9a883bd59101a3e83c5f63d082e233dad6d6f3d4aadb93db4f10d3e', 1),
	(1, 11, '\x865d5c3e92a9b0bd500c84bc28e454bc640203be3f1b2f3e4464e0bde08f43beeda653bdeef2943e2122483d1145b43dd0ca76be1b36d13db3f414be32e5dfbc0f7b8abdaddf9d3c7a838a3ede24e73d9b02593e0dd59d3d7d2e173db5d21ebeb6aae4bcbf75c1bd7466853ea6e326bdc90a603e0a7e9a3d05d3dcbd1a088cbd6867103ea62f013ec5bbd5bd5cb8be3d9f40293d0c011fbe3ea9fdbdbfe34bbedf3da63d5367cc3c145b4fbdd3df1e3ee8138f3dc8be2f3b67a1883dcc888bbd21c41cbd7f55a5bd2d0bafbd035b70be1e440abd53415cbd03adc13de4a752bd43588fbcd5c1ec3d9c22debd793dafbd77289ebd919e83bd511b2f3e294198bd', 0.8082590103149414),
	(1, 12, '\x40bf023ed73e9abd5fe18e3c0e3776bd0b65e8bccc8db93d7d6800be99cc6bbefc7f9dbdf5de7f3e0b71f23d666a2f3ed70e80bea8f0c33c564c853d65c2f53ac0e9203d710cc3bd4f61963eadcef43d55eb143e03136fbd4854cdbbe05637be94f0973d6dd7d6bd3a29593e11410fbe5d71883e179a70bd5c14c0bdcdc54c3c01d6953dc79f133ebaae30be1ed5bb3d7b37fa3c8eeb46be1597f9bd11cbd2bdae2f5f3d8ede8dbc4ba7723d4c27a73eddfbcbbc2029a4bb40151d3e83e697bcef18e2bddcee22bd3b88d4bd83be17be2fcf1fbe1682c1bc91713e3db4500aba897e693c02beea3d568db8bd56df343d9f50e23c711ac1bd3409373d8af8ccbd', 0.9999998807907104),
	(1, 13, '\x39cb513ece3de6bdac8e08bc540d963bc3e83dbe30db493eae429fbdba0410befb7403bddec08b3ebb04073d0e40563d39ac65be9841e13d63e63fbe30a1d8bbf8daeebd91f51f3d6dd4803ec65be33df07e563ead64f43d7b5bfb3c6901febde0f00fbde776bcbd7cae863e27b0803bf83a4d3ee3c1e23d727ec6bd1f3af8bdf1a4183e4224fd3d5a1a6ebdea5fe23dd2206b3d4a25d8bd06b1d1bd12856abee8e3b93d9510e13c2c1392bd2827933d709eb53d4b8e973cd96e2c3d1df690bdb987c1bc063b9dbdb9af92bdbe9b7abe85f84b3c655e6ebd4d17043e34d372bd85d5edbcbba6053e80aabfbd86ffbabdf9c9e8bd52f767bda41f3d3efafb74bd', 0.8513245582580566),
	(1, 14, '\xcb63793e15cdb7bcb80c8bbd0ef92d3da9010abe84d9293e736689bd6709bebdb15230bcf93e5f3e69af7dbd081321bd58c9f1bd3a3e1e3e50e7a8be1c18aabdfd3304beaba31f3eadd6e73da933343dba1b4d3e3e7b3d3ee01ab83db82c99bd560921bebc1bfbbc279c413e3d4b963d478c543dd3f0433e5a02adbdf2d0aebd6f2e203ef8ed0a3dfd7c8fbbcdd3b73ca70b6e3cc2f59bbde1a0b2bd6b644abe3c36853d6121933d7ef725be122da4bd442b1a3e15c0f4bb55288cbd00dbd1bd8016943d1f5fd4bdf428f0bc6a5466be4a3ae03d4ecb83bdd389923d9194b8bd271328bdaf89103d135ac5bdf69b68bec40b16be1b7fc43bb07c803ed8d163bc', 0.9961292743682861),
	(1, 17, '\x66690ebd969a293dc67e083e016929bd6a6212bda924e33d1ff94b3c426101bce45faabdfb6067bdb98d083d0dad6dbdce7e13be5ed318be0ee3b63df593b53d61dfc7bdb5e8a43cbb8d8cbd62e323bee774eb3db9c30d3ce71ce53d819008be68b035be88184dbcc82ce4bdd6acf73d3a1ab83c11772abd558e87be318ab93d738d66be5257933c36aeb0bde71518bea6ed953c0536963ea32cbebdc2021f3de360333e5023473e4cfe2cbd9d5a14bd63ea48be5b29b0bd15790f3ef14f87be1bd3413b72f996bc9abea23ab10da9bdcf7192bdc592283e076fa83d380313be68c066bb6e1ddc3dd9d0233ef8b723bc5b77a4bdda41aa3e79420e3e1329543e', 0.31009823083877563),
	(1, 15, '\xe4f7fe3dda31d73dff05a4bd010a98bdff02d63bfa28753dfe3080bee9e439be08693ebe18de513dd1b43f3e537a783d2a3bfabd389207be7ca8d33d6590f7bccc39c73d376eb3bc3f57113e1146673d09d5083e24d560beaff20a3ecdc383bee7d686bd507c0ebd32277d3d680d13bd885a463ed8c9bebc89a385bdccbd103e0bc321be02eb75bd424779bec3b54dbeb139503d64c50dbe2c1180bd80ea2d3e451cb83d98d84cbd85dee43c63677f3ee7d502beb6cd04be91970e3efbfcb9bd287af43c32c604bef84627bef2d2283df4bb52be12a1a93c5919a9bd346896bd25fd8a3c20050dbe5443503dd4a11bbda8e00ebdd3fdec3c1de24f3eb876d5bc', 1),
	(1, 16, '\x077d0dbec02870bdae1d383ea10a013dc7890fbd42561c3d36506c3ecf231d3edcdbc33d0942bbbdabe80cbe7cd8cebd1e892abc001cbabb294f92bc9956cb3de6a829bee59c123d0da339beae4039be9b79c0bc06554d3ee32ee4bc2d7af03d6b05b3bdaf01a73cb54115be2ee1053e0fe21bbe32ab5ebcb55323beb0ed4dbd4ac739bd08838a3dd234133ebb52623d3f01f4bc188eb93e3725acbc1145f1bddcd3833d4c52503e8c9772bd32667fbe169a45bdad3b333db38c00bc4ede0bbe3e85c3bcbc01cb3d7a68143efce9d4bdc947fb3de6f3ee3da1810f3e66ef58bd931592bce16e563e08c7b03d2420cf3ca1b50fbd81f97c3eb71885bda362453e', 0.5675567388534546),
	(1, 21, '\x95de563e989f133ebba62cbea042923d00ea1cbc13eb093e4e00babc50de3a3d7e8bd13de004253e9e71edbc8356733d3e5d323dfc87b13d02cb54bea1ccc03df2768cbdc44410bcf7c9933c5c1911bd01cc3c3e2faab43ddb98f33dedbd9f3d4d920fbea5ae4d3ed41f363e43e2b539cb4892bea884163d76dc92bc28269fbeee31ac3edc14293dbbd4313eb4f370bdaf8dbdbdfa2b54bec8ec8cbd2b2e093ce519033ef6bc56bb70b5fabd231b1b3eed91173d0f6bc93dc1dd96bdb0361c3ea551b13dd58934bdc27ad73dc9ffae3c3d80ab3c00ae05be2fed24bd2a2dcfbdb5321e3932144abddcf040be07bb2b3b31cf8bbd33c75cbe01eed4bb87a8a33c', 0.5339553356170654),
	(1, 22, '\x917f803b2caf4e3ee6af75beb9f7ba3dd1516cbd403fa83d79bead3d25d3003ea564563ef9aafe3dd08b57be784bb93c46e98abb68e7c8bca63c99bd7d7c1e3d7d4a46be52ca963d296a3abe5d4f1ebc276ccb3de42fc2bc92cd0b3e6a7eba3d1668babea5e6353e1fd93ebd8934d33d6c0c77bedc30b8bdb1e315bb75a24dbe5d22413ec5a6bfbd374db53db6b73ebdbf19a6bd4632c7bd24bb3bbd8895d2bdf353403e376ba0bdcf143fbef2c566bdd94fadbcce15cf3d49a815bd4934093df728383e0305133dd0d6163ee16bd5bc4f71fc3d2aa952bcf36da33d3df8cfbd4f0ffbbdec8a0e3e2df62fbe8303a13d0f0513bd08a997bd005d84bda635a73d', 1),
	(1, 23, '\xae8d463e0e55a8bd3198e93da2ce6abb8c20dd3d028a57bc521243bc431a75bcd6708abb1583dcbd6c36f03cefe5073e85c9913ea563fa3de3cab5bedf6593bd8a96f73dda7f463c25a66c3ebb1adabdb2efa1bda460473e11864abdfc566c3c1b4c693e9d220abde11d173ec14109bedafdbbbdc54b753e7b8268bdebb0a9bcc7d40a3e02a09a3d9972733d5422973c3d9708be8909efbce47488be499cdc3b2b5337be445eb13d2f988c3cdc72be3d83e5763e3346a2bcab511ebe880e443dc8d7d43c95a676bdd5861f3e06bbb7bcecd1a93ca2033cbe36d5d7bde9f03c3d31aec93d48d3f6bde26d78bd836c15be5bc2313cd8251bbd1c9c933d96a20ebd', 1),
	(1, 24, '\x809f0d3ed5e8e33da3ac13be37a3da3c026386bd3346163eead8dfbd73af1abd18f128bdac42773eb5f9093e027276bdf3cd57be936f283ddbacc63d2a7f3c3ef50518bd787dccbdf022a5bc6a5b733d95d78c3ee03af3bca0ddd33d33659f3ccaeeb4bdb01b363e87553c3ea7e4003d1a39ffbd9bd8b9bded80f83c2f838dbe8bb35b3e0873ac3d4359053e3d6987bd93a4873d956452be7af94e3e9543e03de000493e3b975dbcf859dabc8fed523ea98824bedb209c3d9bcc953d04eb263e587d89bd33913dbdf8c709be8a5ea93d9c37e2bda24d4fbc27621fbda35edabd4b7fc73c951cc8bd2ffe8dbd3a6e923d74aaacbd330a6fbede4192bc9bd172bc', 1),
	(1, 25, '\x019f89bd1b5ede3dd08635be95cd7f3d16209c3d8ff80cbe240f31befb75293b22a693bd7b7aa93c77c4113e6e5206be8027bf3df7aa13beed9dc03b920cf0bd9ce4f53d5aa6c9bcdf1fc3bc510e3f3dbf0377bd14d42dbe25b72f3e4c5494bd141d0dbeaaa61d3e5975973cac44243c8f23cebdaffd05bdbad6a4bdeb9cf63d3b0b8cbe77f4afbd1e6285bd839453be5365f33dc7b640bdfb8ea63d5c414b3e13c2583d83b70abe93c11cbd19d117be792597bcbf0748be9f6aa43adb33e93dbdcfca3ddaf0e2bd069213bc10f5463e1e0ce0bc9ec3fe3db6b8cebd12866ebd1807bcbd5789bbbe4d861d3eddc24dbdbd9ef83d8f098cbdafbc5e3ed6bb3d3e', 0.7865736484527588),
	(1, 26, '\x2869c2bcfc7c383e80e54cbe6386813d65e3193dc6f594bdfe883bbdc180f73d574f8fbd702dcebdbad47c3c96904dbe7560383ef3d3c6bd153f3abd091b80bd937a733d37ecd53d007a54bef58937bd6cef3ebd1d9399bd5df6123e80af873d8dc935be61dd373e55d90ebe98bf043eb68666be9d4d5d3cc0a8ab3dffe3303d170c53be758360bec5e4bd3c6c4758be735d11baf6cf3c3dd8db113edbd8383e6aad70bc7d3bb6bdadf3bebdb47981be5a2dca3c2a1a42bd8d449fbd8b86de3d2018013e784be3bc0a89ad3c8cf5403ed5219d3d59fdbb3d5db60bbee7c7d0bc7e009abd04c59abec5e9113ef81906bd39e46f3dbefe24bc2f28203ebf410e3e', 1.0000001192092896),
	(1, 27, '\x2869c2bcfc7c383e80e54cbe6386813d65e3193dc6f594bdfe883bbdc180f73d574f8fbd702dcebdbad47c3c96904dbe7560383ef3d3c6bd153f3abd091b80bd937a733d37ecd53d007a54bef58937bd6cef3ebd1d9399bd5df6123e80af873d8dc935be61dd373e55d90ebe98bf043eb68666be9d4d5d3cc0a8ab3dffe3303d170c53be758360bec5e4bd3c6c4758be735d11baf6cf3c3dd8db113edbd8383e6aad70bc7d3bb6bdadf3bebdb47981be5a2dca3c2a1a42bd8d449fbd8b86de3d2018013e784be3bc0a89ad3c8cf5403ed5219d3d59fdbb3d5db60bbee7c7d0bc7e009abd04c59abec5e9113ef81906bd39e46f3dbefe24bc2f28203ebf410e3e', 1.0000001192092896),
	(1, 28, '\x47e5a7bda24619bcdf57a1bdb05d0f3dfea9a83dbc4913be08a867be132cefbd5fed31bd646a083e0283553e81cab7bb581408bda8e304be901f603de986f9bd148b043e4f9d12be4d1b2e3e8e0cf23dbaa745bda0ab44bec276013ec48338be0ed220bd7d49803ddda12c3ed331e9bd00c4883d820e85bdc97c57beb2c1153e709265be5b39ac3d0aa700beac22e9bd3e04403e6dfdf5bd5b926dbc4ae7063eb794c83d3336febda04d073d26f7a03cf3f95bbd651385be2a4fa33d2356903d9174f33c061816be20ce10bd540ff03d403ff5bdb9cad43d611db7bcd86b87bd1bcb8dbdc1408cbee0cacb3d5a973dbdcb95073ecdacc7bdc23d3e3ee8381c3e', 0.9999998807907104),
	(1, 29, '\x47e5a7bda24619bcdf57a1bdb05d0f3dfea9a83dbc4913be08a867be132cefbd5fed31bd646a083e0283553e81cab7bb581408bda8e304be901f603de986f9bd148b043e4f9d12be4d1b2e3e8e0cf23dbaa745bda0ab44bec276013ec48338be0ed220bd7d49803ddda12c3ed331e9bd00c4883d820e85bdc97c57beb2c1153e709265be5b39ac3d0aa700beac22e9bd3e04403e6dfdf5bd5b926dbc4ae7063eb794c83d3336febda04d073d26f7a03cf3f95bbd651385be2a4fa33d2356903d9174f33c061816be20ce10bd540ff03d403ff5bdb9cad43d611db7bcd86b87bd1bcb8dbdc1408cbee0cacb3d5a973dbdcb95073ecdacc7bdc23d3e3ee8381c3e', 0.9999998807907104),
	(1, 32, '\xa94f553c8cc61a3c675c81bc1e6e2ebdc12ccdbd6bbfda3d96fb06be5a1c0cbe591383bdebbc7f3e07f51e3ec9a69b3daf8db2be0936d7bd02178d3e404bcd3d1688babc942bebbd43a8163e6a0c043eeba61a3e8dfd3cbe3182a53d71e904bebee27bbd8dc029bd9d92443e176485bc80fa613ee75e11bebd337abd6784c8bd602e5f3c0cab9a3d2ff40bbee414ac3c3c01a93de395ecbd3897b13bb9630f3cd0dd6a3ec8bfc1bdc0d67d3cbe03653ecb7f2bbeefda32bd7ad7303e075261bcfd3a07be18708bb9c81238be046a02beab660cbedd39033d31da0c3e0e9df3bce2b53fbd7d05f23d009840bdf534073ec8bcd9bbf8a38cbd2598093d93f77bbd', 0.6660672426223755),
	(1, 30, '\xbcb5c2bda283c6bdb351ab3dc5d9e3bcebd4a1bdb2fba73dce7e663d4ce59dbd77c5073d1387403e44f19fbda668973da65ec3be268b963cb81e643e0ae0a43d050d0bbe9a50a4bdb6791f3d3b28483d0785e13d612c593c7a2003bd1f7974bd39c431bdf8c172bd20f2c93c114a81bcb28d5d3e16ec2bbe08a21abe22ac45bdb51e413db5f11b3e1b6a9cbdbabf273ed174943d928b363d9fa344bdd0bf60be6a86103e5ce2813dcff3343be702e93d5064e4bd6383933c1d02293e298804be149514bef31ee53dc32e8bbdfb515ebed2d63cbd07d9d43d8b49703ea6c3a9bbb5ba41bd537ac53efc5830bd42db0e3eb27c2a3d84fea43d3f9a9ebdce4085bc', 0.9999999403953552),
	(1, 31, '\xdcfea13d1ccdb23ddcf89ebdd99a0fbda67889bd6025bc3ddfdb66be0cef10becbd8e2bd6ad6583e4e7a743e71449e3dcda85cbec2d316bedd884f3ed3158c3d34df7e3d40c8d5bdef1f2f3e363a173e69f3f43d314882beeef6033ea50211be195238bdc06b74bcbc72673e8cf5d5bc27ff1a3efc999ebd1c51d2b9db78b3bd707782bb220f0d3c1c2822be61fda5bdbbdc973d71694bbed4270b3d445a173ebffe4f3ef20a2fbecfc0a03c3a22703e6cee0abe009b8abdb820f13d5f40603d538f87bddede9dbd71b842be6667c8bc65e91ebedaaaa8bc5bbcde3cd5ece1bcb49208bd4ccbb9bdc8ca61bda276803d2a1ad5bc0ae208be2807c93d5c329ebd', 0.7614116668701172),
	(1, 33, '\xdb154bbe493b193e4a2ae4bd9228323d8054e2bdee08edbc26043dbde14c57beefd9bebbc231acbdcbb3173dbb6f5d3d7a741abe546322be5088ad3e87057cbcea5905bddd2cacbdffac35bd7ffd9a3e5f5f1b3d273d0bbe0a27b33d3f2521becce39ebdffac35be42794a3dfcec183c39389b3d4a3722be045d763e0952ea3de00648bd67a838be29fda7be32a6533d2273ce3dea77fe3c27cc473e493b993d544d9a3defa9b7bd2303e43dd8e46a3a5764febd5cbd773c18fe203e311f85bdca6d88bdbb6f5dbcfb4bcebde166563df1da173ec852b03d7672e83d02c09fbd63540fbd28c4d93cd695913cb18d63bd75b3a43d004e003e80c5253eb98880bd', 0.40869513154029846),
	(1, 34, '\xdb154bbe493b193e4a2ae4bd9228323d8054e2bdee08edbc26043dbde14c57beefd9bebbc231acbdcbb3173dbb6f5d3d7a741abe546322be5088ad3e87057cbcea5905bddd2cacbdffac35bd7ffd9a3e5f5f1b3d273d0bbe0a27b33d3f2521becce39ebdffac35be42794a3dfcec183c39389b3d4a3722be045d763e0952ea3de00648bd67a838be29fda7be32a6533d2273ce3dea77fe3c27cc473e493b993d544d9a3defa9b7bd2303e43dd8e46a3a5764febd5cbd773c18fe203e311f85bdca6d88bdbb6f5dbcfb4bcebde166563df1da173ec852b03d7672e83d02c09fbd63540fbd28c4d93cd695913cb18d63bd75b3a43d004e003e80c5253eb98880bd', 0.40869513154029846);
INSERT INTO public.jobs VALUES
	('01a2037c-7f1d-71a3-86c5-affe0262d6c4', 'ingest', '01a2037c-747c-7054-bc0e-31fd63b8abdf', 'succeeded', 'done', 1, 0, 40, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-2200f3af4b35', '01a2037c-7f21-714d-b654-be68b34e6caa', NULL, 1795354820381, 1795354820511, '{"policy":"subtitle","params":{"max_clip_seconds":30.0,"min_clip_seconds":2.0,"pause_seconds":0.5}}'),
	('01a2037c-68ca-7094-bea2-bfabe20877e4', 'ingest', '01a2037c-68c6-7090-a755-a0dcfdd81c34', 'succeeded', 'done', 1, 60, 60, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-22010a5a7ce3', '01a2037c-68e5-76bd-8160-d9f3b865bcc4', NULL, 1795354814664, 1795354815215, NULL),
	('01a2037c-807a-76aa-ba41-4a3f1b2e7de1', 'ingest', '01a2037c-7811-7134-94a7-531a4afc6755', 'queued', '', 0, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, 1795354820730, 1795354820730, '{"policy":"fixed","params":{"every_seconds":2.0}}'),
	('01a2037c-6bfa-7567-8997-1803c7708182', 'ingest', '01a2037c-6bf6-7137-be54-93e8f849e105', 'succeeded', 'done', 1, 40, 40, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-2200f3af4b35', '01a2037c-6c05-77cf-aa8b-f6b53be66a83', NULL, 1795354815481, 1795354815969, NULL),
	('01a2037c-6f22-743f-a631-d4440c605ff4', 'ingest', '01a2037c-6f1d-769f-bdbd-b299e035df50', 'succeeded', 'done', 1, 40, 40, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-22010a5a7ce3', '01a2037c-6f26-76ca-8b46-37b744252a92', NULL, 1795354816289, 1795354816663, NULL),
	('01a2037c-71fc-76d0-90ad-50522834b142', 'ingest', '01a2037c-71fa-74ce-90d9-12d119af1b9b', 'succeeded', 'done', 1, 40, 40, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-22010a5a7ce3', '01a2037c-7201-77f6-adb7-5e5694a044c0', NULL, 1795354817019, 1795354817436, NULL),
	('01a2037c-747e-7719-9923-97f751318e78', 'ingest', '01a2037c-747c-7054-bc0e-31fd63b8abdf', 'succeeded', 'done', 1, 40, 40, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-22010a5a7ce3', '01a2037c-7481-76ff-b564-f112bc7f0739', NULL, 1795354817661, 1795354818188, NULL),
	('01a2037c-7819-701a-b5fa-7d04498b1c12', 'ingest', '01a2037c-7811-7134-94a7-531a4afc6755', 'succeeded', 'done', 1, 60, 60, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-22010a5a7ce3', '01a2037c-781f-7036-9099-49de139ddc92', NULL, 1795354818585, 1795354819083, NULL),
	('01a2037c-7b95-74f2-8481-96c98a6ea52f', 'ingest', '01a2037c-7b91-71a7-a939-cf2643c107ec', 'succeeded', 'done', 1, 40, 40, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-2200f3af4b35', '01a2037c-7b9b-7379-bb20-648aa16a4a2c', NULL, 1795354819476, 1795354819785, NULL),
	('01a2037c-7dac-77c6-90d5-498c321f7a4e', 'ingest', '01a2037c-7da9-72cf-8e09-2cc1e875d648', 'succeeded', 'done', 1, 40, 40, NULL, 1, NULL, '01a2037c-6774-7770-a7d2-22010a5a7ce3', '01a2037c-7db4-7169-b499-10f6cc304b29', NULL, 1795354820010, 1795354820313, NULL);
INSERT INTO public.passages VALUES
	(5, 1, 'The diver leaves the platform.
Two and a half twists.
A clean entry into the water.'),
	(20, 2, 'The diver leaves the platform.
Two and a half twists.
A clean entry into the water.');
INSERT INTO public.spaces OVERRIDING SYSTEM VALUE VALUES
	(1, '1ade909cf65742029a7d57ec2c285177bece35893ef93bc2c532ec6ef9af278b', 'tiny-1ade90', 'builtin:tiny', 64, 1795354814292, false);
INSERT INTO public.span_attributes VALUES
	(15, '\x2f6c6162656c', 'string', NULL, '\x6f6e65'),
	(30, '\x2f6c6162656c', 'string', NULL, '\x6f6e65');
INSERT INTO public.spans OVERRIDING SYSTEM VALUE VALUES
	(1, '01a2037c-6aea-74fa-af95-886924847987', '01a2037c-68c6-7090-a755-a0dcfdd81c34', 'video', false, 0, 6000, '{}'),
	(2, '01a2037c-6aea-74fa-af95-886a400488d2', '01a2037c-68c6-7090-a755-a0dcfdd81c34', 'clip', false, 0, 2000, '{}'),
	(3, '01a2037c-6aea-74fa-af95-886bae2141d4', '01a2037c-68c6-7090-a755-a0dcfdd81c34', 'clip', false, 2000, 4000, '{}'),
	(4, '01a2037c-6aea-74fa-af95-886c17de257a', '01a2037c-68c6-7090-a755-a0dcfdd81c34', 'clip', false, 4000, 6000, '{}'),
	(5, '01a2037c-6aee-74a3-b6cc-c97a92228dd9', '01a2037c-68c6-7090-a755-a0dcfdd81c34', 'passage', false, 200, 5200, '{}'),
	(6, '01a2037c-6ddd-7617-9f2e-46983db4d2e5', '01a2037c-6bf6-7137-be54-93e8f849e105', 'video', false, 0, 4000, '{}'),
	(7, '01a2037c-6ddd-7617-9f2e-469984057430', '01a2037c-6bf6-7137-be54-93e8f849e105', 'clip', false, 0, 1200, '{}'),
	(8, '01a2037c-6ddd-7617-9f2e-469a2db2d5fb', '01a2037c-6bf6-7137-be54-93e8f849e105', 'clip', false, 1200, 2400, '{}'),
	(9, '01a2037c-6ddd-7617-9f2e-469bd6df97cd', '01a2037c-6bf6-7137-be54-93e8f849e105', 'clip', false, 2400, 3200, '{}'),
	(10, '01a2037c-6ddd-7617-9f2e-469cf7a5cb78', '01a2037c-6bf6-7137-be54-93e8f849e105', 'clip', false, 3200, 4000, '{}'),
	(11, '01a2037c-7095-756c-92ec-44319d405e46', '01a2037c-6f1d-769f-bdbd-b299e035df50', 'video', false, 0, 4000, '{}'),
	(12, '01a2037c-7095-756c-92ec-4432323c8c88', '01a2037c-6f1d-769f-bdbd-b299e035df50', 'clip', false, 0, 1500, '{}'),
	(13, '01a2037c-7095-756c-92ec-443360e615b9', '01a2037c-6f1d-769f-bdbd-b299e035df50', 'clip', false, 1500, 3000, '{}'),
	(14, '01a2037c-7095-756c-92ec-443408739ceb', '01a2037c-6f1d-769f-bdbd-b299e035df50', 'clip', false, 3000, 4000, '{}'),
	(15, '01a2037c-71fb-76ee-ac0d-6bb104cd067a', '01a2037c-71fa-74ce-90d9-12d119af1b9b', 'clip', true, 500, 1500, '{"label":"one"}'),
	(16, '01a2037c-71fb-76ee-ac0d-6bb2bb5000f9', '01a2037c-71fa-74ce-90d9-12d119af1b9b', 'clip', true, 1500, 3500, '{}'),
	(17, '01a2037c-739a-70e4-915d-16ba104acb45', '01a2037c-71fa-74ce-90d9-12d119af1b9b', 'video', false, 0, 4000, '{}'),
	(20, '01a2037c-768c-725d-ae68-6ae8ef1ec32c', '01a2037c-747c-7054-bc0e-31fd63b8abdf', 'passage', false, 200, 4000, '{}'),
	(21, '01a2037c-7a0a-751f-8fe4-760785172f54', '01a2037c-7811-7134-94a7-531a4afc6755', 'video', false, 0, 6000, '{}'),
	(22, '01a2037c-7a0a-751f-8fe4-7608bf0cb79b', '01a2037c-7811-7134-94a7-531a4afc6755', 'clip', false, 0, 2000, '{}'),
	(23, '01a2037c-7a0a-751f-8fe4-7609bc0a3584', '01a2037c-7811-7134-94a7-531a4afc6755', 'clip', false, 2000, 4000, '{}'),
	(24, '01a2037c-7a0a-751f-8fe4-760a0804d772', '01a2037c-7811-7134-94a7-531a4afc6755', 'clip', false, 4000, 6000, '{}'),
	(25, '01a2037c-7cc7-72c7-a61e-5b6a2799bad1', '01a2037c-7b91-71a7-a939-cf2643c107ec', 'video', false, 0, 4000, '{}'),
	(26, '01a2037c-7cc7-72c7-a61e-5b6b5c0628e4', '01a2037c-7b91-71a7-a939-cf2643c107ec', 'clip', false, 0, 1000, '{}'),
	(27, '01a2037c-7cc7-72c7-a61e-5b6c7a1276ae', '01a2037c-7b91-71a7-a939-cf2643c107ec', 'clip', false, 1000, 2000, '{}'),
	(28, '01a2037c-7cc7-72c7-a61e-5b6d1c3be07e', '01a2037c-7b91-71a7-a939-cf2643c107ec', 'clip', false, 2000, 3000, '{}'),
	(29, '01a2037c-7cc7-72c7-a61e-5b6eebbbc603', '01a2037c-7b91-71a7-a939-cf2643c107ec', 'clip', false, 3000, 4000, '{}'),
	(30, '01a2037c-7dab-7793-b2b1-c1e4418e84e8', '01a2037c-7da9-72cf-8e09-2cc1e875d648', 'clip', true, 500, 1500, '{"label":"one"}'),
	(31, '01a2037c-7dab-7793-b2b1-c1e5a8335a06', '01a2037c-7da9-72cf-8e09-2cc1e875d648', 'clip', true, 1500, 3500, '{}'),
	(32, '01a2037c-7ed8-719e-b6b9-cf9b076b05a4', '01a2037c-7da9-72cf-8e09-2cc1e875d648', 'video', false, 0, 4000, '{}'),
	(33, '01a2037c-7f9a-736b-bfc8-16d9418e60e0', '01a2037c-747c-7054-bc0e-31fd63b8abdf', 'video', false, 0, 4000, '{}'),
	(34, '01a2037c-7f9a-736b-bfc8-16da22c96e83', '01a2037c-747c-7054-bc0e-31fd63b8abdf', 'clip', false, 0, 4000, '{}');
INSERT INTO public.tracks OVERRIDING SYSTEM VALUE VALUES
	(1, '01a2037c-68c6-7090-a755-a0dcfdd81c34', 'speech', 'en', 'upload', ''),
	(2, '01a2037c-747c-7054-bc0e-31fd63b8abdf', 'speech', 'en', 'upload', '');
INSERT INTO public.video_attributes VALUES
	('01a2037c-68c6-7090-a755-a0dcfdd81c34', '\x2f6576656e74', 'string', NULL, '\x666c6f6f72'),
	('01a2037c-6bf6-7137-be54-93e8f849e105', '\x2f6576656e74', 'string', NULL, '\x7661756c74'),
	('01a2037c-6f1d-769f-bdbd-b299e035df50', '\x2f6576656e74', 'string', NULL, '\x666c6f6f72'),
	('01a2037c-71fa-74ce-90d9-12d119af1b9b', '\x2f6576656e74', 'string', NULL, '\x7661756c74'),
	('01a2037c-747c-7054-bc0e-31fd63b8abdf', '\x2f6576656e74', 'string', NULL, '\x666c6f6f72'),
	('01a2037c-7811-7134-94a7-531a4afc6755', '\x2f6576656e74', 'string', NULL, '\x7661756c74'),
	('01a2037c-7b91-71a7-a939-cf2643c107ec', '\x2f6576656e74', 'string', NULL, '\x666c6f6f72'),
	('01a2037c-7da9-72cf-8e09-2cc1e875d648', '\x2f6576656e74', 'string', NULL, '\x7661756c74');
INSERT INTO public.videos VALUES
	('01a2037c-68c6-7090-a755-a0dcfdd81c34', '1277a322f7c9458131e4f958fcd5d43bb3b0fc28c438b0747a919d7828a2c2d3', 'videos/01a2037c-68c6-7090-a755-a0dcfdd81c34.mp4', 'dive.mp4', 6810, 'dive', '{"event":"floor"}', NULL, NULL, 1795354814664, 'ready', '{"policy":"hybrid","params":{"detector":"content","filter":"merge","max_clip_seconds":30.0,"min_clip_seconds":0.5,"min_scene_frames":15,"slide_area_percent":1.0,"threshold":27.0,"weights":{"edges":0.0,"hue":1.0,"saturation":1.0,"value":1.0}}}', '{"duration_ms":6000,"frame_rate":10.0,"frames":60,"width":96,"height":64,"codec":"h264","variable_frame_rate":false,"media_offset_ms":0,"plays_in_browsers":true,"seek_is_safe":true,"probe":{"clock":{"den":10240,"num":1,"origin":0},"codec":"h264","container":"mov,mp4,m4a,3gp,3g2,mj2","duration_ms":6000,"frame_rate":10.0,"has_audio":false,"height":64,"matrix":"bt601","media_offset_ms":0,"pixel_format":"yuv420p","plays_in_browsers":true,"stream":0,"subtitles":[],"variable_frame_rate":false,"width":96}}', 6000, 0, '[]'),
	('01a2037c-6bf6-7137-be54-93e8f849e105', '2098019470e75460fd58e1d137e0c01c0fec64d00dbbe17220de0664fad99a8e', 'videos/01a2037c-6bf6-7137-be54-93e8f849e105.mp4', 'lovr.mp4', 2968, 'lovr', '{"event":"vault"}', NULL, NULL, 1795354815481, 'ready', '{"policy":"content","params":{"detector":"content","filter":"merge","max_clip_seconds":1.2,"min_scene_seconds":5.0,"preset":"lovr","threshold":34.0,"weights":{"edges":0.0,"hue":1.0,"saturation":1.0,"value":1.0}}}', '{"duration_ms":4000,"frame_rate":10.0,"frames":40,"width":96,"height":64,"codec":"h264","variable_frame_rate":false,"media_offset_ms":0,"plays_in_browsers":true,"seek_is_safe":true,"probe":{"clock":{"den":10240,"num":1,"origin":0},"codec":"h264","container":"mov,mp4,m4a,3gp,3g2,mj2","duration_ms":4000,"frame_rate":10.0,"has_audio":false,"height":64,"matrix":"bt601","media_offset_ms":0,"pixel_format":"yuv420p","plays_in_browsers":true,"stream":0,"subtitles":[],"variable_frame_rate":false,"width":96}}', 4000, 0, '[]'),
	('01a2037c-6f1d-769f-bdbd-b299e035df50', '9a66edd47c83518f41fcf4b027a3feea2d1ee2360c0c4142bb17778785bd48ed', 'videos/01a2037c-6f1d-769f-bdbd-b299e035df50.mp4', 'fixed.mp4', 3797, 'fixed', '{"event":"floor"}', NULL, NULL, 1795354816289, 'ready', '{"policy":"fixed","params":{"every_seconds":1.5}}', '{"duration_ms":4000,"frame_rate":10.0,"frames":40,"width":96,"height":64,"codec":"h264","variable_frame_rate":false,"media_offset_ms":0,"plays_in_browsers":true,"seek_is_safe":true,"probe":{"clock":{"den":10240,"num":1,"origin":0},"codec":"h264","container":"mov,mp4,m4a,3gp,3g2,mj2","duration_ms":4000,"frame_rate":10.0,"has_audio":false,"height":64,"matrix":"bt601","media_offset_ms":0,"pixel_format":"yuv420p","plays_in_browsers":true,"stream":0,"subtitles":[],"variable_frame_rate":false,"width":96}}', 4000, 0, '[]'),
	('01a2037c-71fa-74ce-90d9-12d119af1b9b', '296782afdef5231957f6b99ebfb2e2e276e7c707378a0b819edfd9246113f927', 'videos/01a2037c-71fa-74ce-90d9-12d119af1b9b.mp4', 'given.mp4', 2762, 'given', '{"event":"vault"}', NULL, NULL, 1795354817019, 'ready', '{"policy":"given","params":{}}', '{"duration_ms":4000,"frame_rate":10.0,"frames":40,"width":96,"height":64,"codec":"h264","variable_frame_rate":false,"media_offset_ms":0,"plays_in_browsers":true,"seek_is_safe":true,"probe":{"clock":{"den":10240,"num":1,"origin":0},"codec":"h264","container":"mov,mp4,m4a,3gp,3g2,mj2","duration_ms":4000,"frame_rate":10.0,"has_audio":false,"height":64,"matrix":"bt601","media_offset_ms":0,"pixel_format":"yuv420p","plays_in_browsers":true,"stream":0,"subtitles":[],"variable_frame_rate":false,"width":96}}', 4000, 0, '[]'),
	('01a2037c-7b91-71a7-a939-cf2643c107ec', '1a025bec69216edd397936c60ccbea01413ba06817e20cca2b67cac835c88ea2', 'videos/01a2037c-7b91-71a7-a939-cf2643c107ec.mp4', 'first.mp4', 2987, 'first', '{"event":"floor"}', NULL, NULL, 1795354819476, 'ready', '{"policy": "content", "params": {"threshold": 30.0, "max_clip_seconds": 1.25, "min_scene_frames": 15}}', '{"duration_ms":4000,"frame_rate":10.0,"frames":40,"width":96,"height":64,"codec":"h264","variable_frame_rate":false,"media_offset_ms":0,"plays_in_browsers":true,"seek_is_safe":true,"probe":{"clock":{"den":10240,"num":1,"origin":0},"codec":"h264","container":"mov,mp4,m4a,3gp,3g2,mj2","duration_ms":4000,"frame_rate":10.0,"has_audio":false,"height":64,"matrix":"bt601","media_offset_ms":0,"pixel_format":"yuv420p","plays_in_browsers":true,"stream":0,"subtitles":[],"variable_frame_rate":false,"width":96}}', 4000, 0, '[]'),
	('01a2037c-7811-7134-94a7-531a4afc6755', '2d2c35384407172ac8516b3bc43ce9d59c248fab71c67163f75c1214cc02756b', 'videos/01a2037c-7811-7134-94a7-531a4afc6755.mp4', 'anew.mp4', 3415, 'anew', '{"event":"vault"}', NULL, NULL, 1795354818585, 'ready', '{"policy":"hybrid","params":{"detector":"adaptive","max_clip_seconds":30.0,"min_clip_seconds":0.5,"min_content_value":15.0,"min_scene_frames":15,"slide_area_percent":1.0,"threshold":3.0,"weights":{"edges":0.5,"hue":1.0,"saturation":1.0,"value":1.0},"window_width":2}}', '{"duration_ms":6000,"frame_rate":10.0,"frames":60,"width":96,"height":64,"codec":"h264","variable_frame_rate":false,"media_offset_ms":0,"plays_in_browsers":true,"seek_is_safe":true,"probe":{"clock":{"den":10240,"num":1,"origin":0},"codec":"h264","container":"mov,mp4,m4a,3gp,3g2,mj2","duration_ms":6000,"frame_rate":10.0,"has_audio":false,"height":64,"matrix":"bt601","media_offset_ms":0,"pixel_format":"yuv420p","plays_in_browsers":true,"stream":0,"subtitles":[],"variable_frame_rate":false,"width":96}}', 6000, 0, '[]'),
	('01a2037c-7da9-72cf-8e09-2cc1e875d648', 'dd0fe0d6a2343df39107d713a8548f4953757ab1e034e04dbedbc03d698519ac', 'videos/01a2037c-7da9-72cf-8e09-2cc1e875d648.mp4', 'first-given.mp4', 5509, 'first-given', '{"event":"vault"}', NULL, NULL, 1795354820010, 'ready', '{"policy": "given", "params": {}}', '{"duration_ms":4000,"frame_rate":10.0,"frames":40,"width":96,"height":64,"codec":"h264","variable_frame_rate":false,"media_offset_ms":0,"plays_in_browsers":true,"seek_is_safe":true,"probe":{"clock":{"den":10240,"num":1,"origin":0},"codec":"h264","container":"mov,mp4,m4a,3gp,3g2,mj2","duration_ms":4000,"frame_rate":10.0,"has_audio":false,"height":64,"matrix":"bt601","media_offset_ms":0,"pixel_format":"yuv420p","plays_in_browsers":true,"stream":0,"subtitles":[],"variable_frame_rate":false,"width":96}}', 4000, 0, '[]'),
	('01a2037c-747c-7054-bc0e-31fd63b8abdf', 'bebecdfcada4266b1b75c1a26c35c2d3a4ed3c4fd8ff6dc99804b081fe1d1bd5', 'videos/01a2037c-747c-7054-bc0e-31fd63b8abdf.mp4', 'talk.mp4', 2637, 'talk', '{"event":"floor"}', NULL, NULL, 1795354817661, 'ready', '{"policy":"subtitle","params":{"max_clip_seconds":30.0,"min_clip_seconds":2.0,"pause_seconds":0.5}}', '{"duration_ms":4000,"frame_rate":10.0,"frames":40,"width":96,"height":64,"codec":"h264","variable_frame_rate":false,"media_offset_ms":0,"plays_in_browsers":true,"seek_is_safe":true,"probe":{"clock":{"den":10240,"num":1,"origin":0},"codec":"h264","container":"mov,mp4,m4a,3gp,3g2,mj2","duration_ms":4000,"frame_rate":10.0,"has_audio":false,"height":64,"matrix":"bt601","media_offset_ms":0,"pixel_format":"yuv420p","plays_in_browsers":true,"stream":0,"subtitles":[],"variable_frame_rate":false,"width":96}}', 4000, 0, '[]');
SELECT pg_catalog.setval('public.changes_seq_seq', 34, true);
SELECT pg_catalog.setval('public.cues_key_seq', 6, true);
SELECT pg_catalog.setval('public.spaces_key_seq', 1, true);
SELECT pg_catalog.setval('public.spans_key_seq', 34, true);
SELECT pg_catalog.setval('public.tracks_key_seq', 2, true);
ALTER TABLE ONLY public._sqlx_migrations
    ADD CONSTRAINT _sqlx_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.activations
    ADD CONSTRAINT activations_pkey PRIMARY KEY (kind);
ALTER TABLE ONLY public.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.cue_terms
    ADD CONSTRAINT cue_terms_pkey PRIMARY KEY (term);
ALTER TABLE ONLY public.cues
    ADD CONSTRAINT cues_id_key UNIQUE (id);
ALTER TABLE ONLY public.cues
    ADD CONSTRAINT cues_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.cues
    ADD CONSTRAINT cues_track_place_key UNIQUE (track, place);
ALTER TABLE ONLY public.embeddings
    ADD CONSTRAINT embeddings_pkey PRIMARY KEY (space, span);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.passages
    ADD CONSTRAINT passages_pkey PRIMARY KEY (span);
ALTER TABLE ONLY public.spaces
    ADD CONSTRAINT spaces_id_key UNIQUE (id);
ALTER TABLE ONLY public.spaces
    ADD CONSTRAINT spaces_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.spans
    ADD CONSTRAINT spans_id_key UNIQUE (id);
ALTER TABLE ONLY public.spans
    ADD CONSTRAINT spans_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.tracks
    ADD CONSTRAINT tracks_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.tracks
    ADD CONSTRAINT tracks_video_kind_language_key UNIQUE (video, kind, language);
ALTER TABLE ONLY public.videos
    ADD CONSTRAINT videos_content_hash_key UNIQUE (content_hash);
ALTER TABLE ONLY public.videos
    ADD CONSTRAINT videos_pkey PRIMARY KEY (id);
CREATE INDEX cue_terms_unused ON public.cue_terms USING btree (term) WHERE (cues = 0);
CREATE INDEX cues_by_words ON public.cues USING gin (lexemes);
CREATE INDEX embeddings_by_span ON public.embeddings USING btree (span);
CREATE INDEX idempotency_keys_by_age ON public.idempotency_keys USING btree (created_at_ms);
CREATE INDEX idempotency_keys_by_video ON public.idempotency_keys USING btree (video);
CREATE INDEX jobs_by_video ON public.jobs USING btree (video, id);
CREATE INDEX jobs_unfinished ON public.jobs USING btree (id) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text]));
CREATE INDEX passages_by_track ON public.passages USING btree (track);
CREATE INDEX span_attributes_by_path ON public.span_attributes USING btree (path, kind, number);
CREATE INDEX span_attributes_by_span ON public.span_attributes USING btree (span);
CREATE INDEX spans_by_video ON public.spans USING btree (video, level, start_ms, id);
CREATE INDEX video_attributes_by_path ON public.video_attributes USING btree (path, kind, number);
CREATE INDEX video_attributes_by_video ON public.video_attributes USING btree (video);
ALTER TABLE ONLY public.activations
    ADD CONSTRAINT activations_space_fkey FOREIGN KEY (space) REFERENCES public.spaces(key);
ALTER TABLE ONLY public.cues
    ADD CONSTRAINT cues_track_fkey FOREIGN KEY (track) REFERENCES public.tracks(key) ON DELETE CASCADE;
ALTER TABLE ONLY public.embeddings
    ADD CONSTRAINT embeddings_space_fkey FOREIGN KEY (space) REFERENCES public.spaces(key);
ALTER TABLE ONLY public.embeddings
    ADD CONSTRAINT embeddings_span_fkey FOREIGN KEY (span) REFERENCES public.spans(key) ON DELETE CASCADE;
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_video_fkey FOREIGN KEY (video) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_video_fkey FOREIGN KEY (video) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.passages
    ADD CONSTRAINT passages_span_fkey FOREIGN KEY (span) REFERENCES public.spans(key) ON DELETE CASCADE;
ALTER TABLE ONLY public.passages
    ADD CONSTRAINT passages_track_fkey FOREIGN KEY (track) REFERENCES public.tracks(key) ON DELETE CASCADE;
ALTER TABLE ONLY public.span_attributes
    ADD CONSTRAINT span_attributes_span_fkey FOREIGN KEY (span) REFERENCES public.spans(key) ON DELETE CASCADE;
ALTER TABLE ONLY public.spans
    ADD CONSTRAINT spans_video_fkey FOREIGN KEY (video) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tracks
    ADD CONSTRAINT tracks_video_fkey FOREIGN KEY (video) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.video_attributes
    ADD CONSTRAINT video_attributes_video_fkey FOREIGN KEY (video) REFERENCES public.videos(id) ON DELETE CASCADE;
