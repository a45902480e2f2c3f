//! Checks that ids of spaces stay the same across releases: stored vectors depend on them. An id may change here only with a
//! change that gives other vectors, such as the cleaning of texts.

use std::path::Path;

use reprise_encoders::{DeviceChoice, LoadOptions, Precision, load_with};

/// A model (`builtin:NAME`, or a small one that tests/parity/make.py wrote) and the id of its space.
type Stored = (&'static str, &'static str);

fn id_of(model: &str, precision: Precision) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data").join(model);
    let name = if model.starts_with("builtin:") { model } else { folder.to_str().unwrap() };
    let options = LoadOptions { devices: vec![DeviceChoice::Cpu], precision, ..LoadOptions::default() };
    load_with(&name.parse().unwrap(), &options)
        .map_or_else(|error| error.to_string(), |loaded| loaded.space.id)
}

#[track_caller]
fn check(precision: Precision, stored: &[Stored]) {
    let found = stored.iter().map(|(model, id)| (*model, id_of(model, precision), *id));
    let other: Vec<_> = found.filter(|(_, found, id)| found != id).collect();
    assert!(other.is_empty(), "the model, its id, and the stored id: {other:#?}");
}

#[test]
fn stored_spaces_are_found_again() {
    let all = [
        ("builtin:sports", "f05222f739e7d443b6708aab2df783664fcb0a572747683bda40c6af1cc43791"),
        ("builtin:tiny", "1ade909cf65742029a7d57ec2c285177bece35893ef93bc2c532ec6ef9af278b"),
        ("legacy", "85734f6614ca579109ad87be8d63b0b44720892c63f681aa31505ba062a31872"),
        ("wordpiece", "f47bac296ba3d23fe0843ac5a261baf3f81556c085371a6b4bb93b7216d45ff3"),
        ("unigram", "d5fcd2da5da607ad2790ff1dc24c9d42247f011e344a34d7ac66da62b0e5a7a9"),
        ("long-clip/hugging-face", "361b08791306981f8601fca182aa9a11d7ba181384f2408ce8cc26a5aa578a57"),
        ("long-clip/original", "eeea2a5b690fd837832ce668e92f92f6488a925aa79a651bd8c3066b31df7789"),
        ("openai", "ba4007f565df3a6297ec19465ab4e9f8f3c8a4c200911d2e28882a7389631f8f"),
        ("open-clip/clip", "838e6a8bf004fda157d26ef8d3328fbde0e04b87c008bfe5345a35656685a40f"),
        ("open-clip/custom", "d15113d778235a249ded844704a9f570a2e42e466fda4603d2d650d8c930e544"),
        ("open-clip/eva", "97e786b36bc9e8a2dbc6f2739f5f85378a9bded703ac1e82c60d0e985729a29b"),
        ("open-clip/eva-post", "b11e6f7e9a4a4ee0dc8746a83c195c8083c47a8afe15f443fa57e99335714ab9"),
        ("open-clip/pe", "d879ef4e41ac9ee7898e2690ba449356f06d2bee11d13564d5e9bffe3e8cd5d6"),
        ("open-clip/pe-large", "7a5b6b1d1ef556b3f3ec54560d2b4197a4a864a3519e68053399999a82300044"),
        ("open-clip-siglip/one", "0271c4846707fec6c6bab949e6a1024defbb1f7498d828b10e83c137398b12f0"),
        ("open-clip-siglip/two", "04aae8b60a45e854e923bb795f79ed138e34ecd65e814b53d9813f3a27efd63c"),
        ("siglip/one", "f5c496a76f60293adec30856a364947910eb2e9b7c924b728ea7b6755efdb4ed"),
        ("siglip/two", "43f1c7f9da75016da45ad3bb546d94f1c18e3a26773befec691925d86803bc67"),
        ("blip", "f53f701de34dab5637878df5a72dee5059c8030869689c1830c221f2eebe35a0"),
        ("blip-covr", "901af5eda90ecf7620fca3b91291b40db4179568c0ee0807f92fd0573144d165"),
        ("blip-2", "b97a073b1ecd019750bb4c27ffea0f33d242c8a3f19d4a1fdde1d69b1f0f4089"),
        ("languagebind", "803215001dc1201fbd7ecb864abd514f127d7af60d45fd4d502b42efc3231481"),
        ("videoclip-xl", "7cd7597bb44cc324c5cc67195a64d91029ccec56685bb63e4ba6465f7958da18"),
        ("covr/bert", "8accb7df362e835feeec424898ef8757738a3637f3fc2661fff078f965628723"),
        ("covr/clip", "dd94dfaedb37ba39ae8b579527d921816fb3c3dca03c0a242ea1493b5354990d"),
        ("covr/qformer", "9e26500ac7c854adc1e38af42ab1941e25bec9dc224529a9836c2703d340eaa8"),
        ("sentence/cls", "5ae534bc5637081482d7a6d43c2fdc7894eb104c9cbcd3019735b3270790eeff"),
        ("sentence/e5-tiny", "125192c3d559de01fe9365fcf1812db9338e3e64f608210564dac4f7b665d940"),
        ("sentence/mean", "13c7a5d4000c17c4b0abcdf7dd2fd64db4b003db838a920d7a883e2b88a3374a"),
        ("sentence/xlm", "162928f41f18fec263367ef8af93f0462a90ba396316a5bc4ac40972e4874abc"),
    ];
    check(Precision::F32, &all);
}

#[test]
fn spaces_of_another_precision_are_found_again() {
    let all = [
        ("builtin:sports", "f05222f739e7d443b6708aab2df783664fcb0a572747683bda40c6af1cc43791"),
        ("builtin:tiny", "b0547a1421b58c0594826897d79e481dce83965e20eac8d301f567e3177a5a28"),
        ("legacy", "856cb118f37730a9481fd03aab07c9a2800eb158dffb64e066a84bba9cfaff9b"),
        ("blip-2", "ff25ad28c3078a8c5714fd9c51e11f0f17a1530afe906db992eb13136be68e70"),
        ("sentence/cls", "cdf63cc04a18d3424504550f642d9550e55023bb599772caa0fdfea31df8b735"),
    ];
    check(Precision::Int8, &all);
    let all = [
        ("builtin:sports", "f05222f739e7d443b6708aab2df783664fcb0a572747683bda40c6af1cc43791"),
        ("builtin:tiny", "5d7e01950cef0f3cd0a6ecd4a6873b5989f23f507357ac6459f743b42dfe7489"),
        ("legacy", "6cb25c738bf92049a365fd4102d53695129a02d0f175554014e98000f2fc5b93"),
        ("blip-2", "63224874c6b54c921a8a0c22ebee36a8cff814093b4790ee2d7b67c0d3686707"),
        ("sentence/cls", "75e5647cab8f4d7debf58fb53358aef75202cc633ccfb425415548a9b694356c"),
    ];
    check(Precision::Bf16, &all);
}
