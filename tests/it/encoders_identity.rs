//! Checks that ids of spaces stay the same across releases: stored vectors depend on them.

use std::path::Path;

use reprise_encoders::{DeviceChoice, LoadOptions, Precision, load_with};

/// `builtin:NAME`, or a small model that tests/parity/make.py wrote.
#[track_caller]
fn check(model: &str, precision: Precision, expected: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data").join(model);
    let name = if model.starts_with("builtin:") { model } else { folder.to_str().unwrap() };
    let options = LoadOptions { devices: vec![DeviceChoice::Cpu], precision, ..LoadOptions::default() };
    let space = load_with(&name.parse().unwrap(), &options).unwrap().space;
    assert_eq!(space.id, expected, "{model}");
}

#[test]
fn stored_spaces_are_found_again() {
    let all = [
        ("builtin:sports", "f05222f739e7d443b6708aab2df783664fcb0a572747683bda40c6af1cc43791"),
        ("builtin:tiny", "1ade909cf65742029a7d57ec2c285177bece35893ef93bc2c532ec6ef9af278b"),
        ("legacy", "e90b13987fa4ff883e36bec23749fda520e3475f8ca8fe12fb2b724018028797"),
        ("wordpiece", "39002b8839b503f8aa99968847cbe6fe2e89d6d0f84714ab362564914fb9cffb"),
        ("unigram", "b3b7cec868ea57ddb176613989e0dd91871af048f556bf367fa00271e2ac7a42"),
        ("long-clip/hugging-face", "85d7c67bd0a0eb26cb2e799076ec585d8f38cdc8181601f260fc96a90dcff50c"),
        ("long-clip/original", "98dfd46d989c29bf6e4dfc946b3b2080ffec383f22bd41dcad1bf109a3d731d2"),
        ("openai", "72eb7918d1a6897ed979e131ab9e9153d549be5567e03ed659edd5d693257061"),
        ("open-clip/clip", "15136490a63906bc09d4f05c8d7db5da1b925b5be9ec8c0ad3896759b321f314"),
        ("open-clip/custom", "38ad7ad3a6cd8cc9339c925d0726a4ea4ed237091ec3f3a708ee54d059872407"),
        ("open-clip/eva", "9757325e509caec9f2ddad632a83b8315b9b7ac0553550ae9c8873b834598c5d"),
        ("open-clip/eva-post", "0945ecabd0efce1825028995492a0f8380dffdc55ed1a685d4736ae790e5b01a"),
        ("open-clip/pe", "52d4c75cbbcd9630d03365a560becb1668aa81cb02cd4da0c40537ff15ddd991"),
        ("open-clip/pe-large", "28302b40fdecd26ce047a7e00dd48dadf7b1e24ad4157e487a6499afa2830a30"),
        ("open-clip-siglip/one", "cdf14230ce66fed1528499aca2302fb211f0d4c38c003c6198aecc61f1ba1a5c"),
        ("open-clip-siglip/two", "c3180f201116126f419d61f650cfcde6ba454abcf1f8e0f296a09a7bbf390131"),
        ("siglip/one", "f5c496a76f60293adec30856a364947910eb2e9b7c924b728ea7b6755efdb4ed"),
        ("siglip/two", "43f1c7f9da75016da45ad3bb546d94f1c18e3a26773befec691925d86803bc67"),
        ("blip", "f53f701de34dab5637878df5a72dee5059c8030869689c1830c221f2eebe35a0"),
        ("blip-covr", "f9f638ec15d9aeb67cd79cce1949802ffb39021691dccd4ebb0079d487c38b0a"),
        ("blip-2", "b97a073b1ecd019750bb4c27ffea0f33d242c8a3f19d4a1fdde1d69b1f0f4089"),
        ("languagebind", "b75ad9f53b68ef19c8389e195b3936477763968ecba7bd1f88a3b8f4eb78fc71"),
        ("videoclip-xl", "136e44121e09f297957d75388307c4ce1753bc5e4c3d4749f5cb92c78538ba1a"),
        ("covr/bert", "8accb7df362e835feeec424898ef8757738a3637f3fc2661fff078f965628723"),
        ("covr/clip", "711348f9ae746f4fa2cefcf4115806eeed174a6cb04b988582b3c0e3a6b6f5ff"),
        ("covr/qformer", "9e26500ac7c854adc1e38af42ab1941e25bec9dc224529a9836c2703d340eaa8"),
        ("sentence/cls", "5ae534bc5637081482d7a6d43c2fdc7894eb104c9cbcd3019735b3270790eeff"),
        ("sentence/e5-tiny", "125192c3d559de01fe9365fcf1812db9338e3e64f608210564dac4f7b665d940"),
        ("sentence/mean", "13c7a5d4000c17c4b0abcdf7dd2fd64db4b003db838a920d7a883e2b88a3374a"),
        ("sentence/xlm", "162928f41f18fec263367ef8af93f0462a90ba396316a5bc4ac40972e4874abc"),
    ];
    for (model, id) in all {
        check(model, Precision::F32, id);
    }
}

#[test]
fn spaces_of_another_precision_are_found_again() {
    check(
        "builtin:sports",
        Precision::Int8,
        "f05222f739e7d443b6708aab2df783664fcb0a572747683bda40c6af1cc43791",
    );
    check(
        "builtin:tiny",
        Precision::Int8,
        "b0547a1421b58c0594826897d79e481dce83965e20eac8d301f567e3177a5a28",
    );
    check("legacy", Precision::Int8, "503cb28355b951655961686c16c53b92304e4c47e52faaf70753856f4eadb485");
    check("blip-2", Precision::Int8, "ff25ad28c3078a8c5714fd9c51e11f0f17a1530afe906db992eb13136be68e70");
    check(
        "sentence/cls",
        Precision::Int8,
        "cdf63cc04a18d3424504550f642d9550e55023bb599772caa0fdfea31df8b735",
    );
}
