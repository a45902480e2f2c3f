//! Reads and writes `.npy` files, numpy's format for one array (numpy.lib.format). Supports tables of common number
//! types.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use half::f16;
use reprise_encoders::Cause;

use super::error::RowsError;

/// A table of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<T> {
    /// `[rows, columns]`, flat.
    pub values: Vec<T>,
    /// Numbers per row.
    pub columns: usize,
}

/// Reads `[rows, columns]` floats of 16, 32 or 64 bits, in either byte order, stored by rows or by columns.
///
/// # Errors
/// The file can't be read, is no `.npy`, or has another shape or number type.
pub fn read_floats(path: &Path) -> Result<Table<f32>, RowsError> {
    read(path, "floats of 16, 32 or 64 bits", |kind| {
        Some(match kind {
            "f2" => (2, |bytes| f16::from_le_bytes(first(bytes)).to_f32()),
            "f4" => (4, |bytes| f32::from_le_bytes(first(bytes))),
            "f8" => (8, |bytes| f64::from_le_bytes(first(bytes)) as f32),
            _ => return None,
        })
    })
}

/// Like [`read_floats`] for integers of 32 or 64 bits. Unsigned ones above `i64::MAX` become negative.
///
/// # Errors
/// See [`read_floats`].
pub fn read_integers(path: &Path) -> Result<Table<i64>, RowsError> {
    read(path, "whole numbers of 32 or 64 bits", |kind| {
        Some(match kind {
            "i4" => (4, |bytes| i64::from(i32::from_le_bytes(first(bytes)))),
            "u4" => (4, |bytes| i64::from(u32::from_le_bytes(first(bytes)))),
            "i8" | "u8" => (8, |bytes| i64::from_le_bytes(first(bytes))),
            _ => return None,
        })
    })
}

/// Writes `[rows, columns]` floats of 32 bits, by rows.
///
/// # Errors
/// The file can't be written.
pub(super) fn write(path: &Path, values: &[f32], columns: usize) -> std::io::Result<()> {
    let rows = values.len() / columns.max(1);
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // Numbers begin at a multiple of 64 bytes: 10 bytes and the text precede them, and a line break ends the text.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(length as u16).to_le_bytes())?;
    file.write_all(format!("{text:<0$}\n", length - 1).as_bytes())?;
    for value in values {
        file.write_all(&value.to_le_bytes())?;
    }
    file.flush()
}

/// Size of a number in bytes, and its reader from little-endian bytes.
type Kind<T> = (usize, fn(&[u8]) -> T);

/// Largest accepted header in bytes; numpy's have fewer than 200.
const HEADER_MOST: u64 = 1 << 16;
/// Numbers per read.
const AT_ONCE: usize = 1 << 16;

/// The first `N` bytes; `bytes` has at least `N`.
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut own = [0; N];
    own.iter_mut().zip(bytes).for_each(|(own, byte)| *own = *byte);
    own
}

fn read<T: Copy>(
    path: &Path,
    wanted: &str,
    kind: impl Fn(&str) -> Option<Kind<T>>,
) -> Result<Table<T>, RowsError> {
    let wrong = |why: Cause| RowsError { path: path.to_owned(), why };
    let file = File::open(path).map_err(|error| wrong(error.into()))?;
    let length = file.metadata().map_err(|error| wrong(error.into()))?.len();
    let mut reader = BufReader::new(file);
    let header = Header::read(&mut reader).map_err(wrong)?;
    let Some((size, of)) = kind(&header.kind) else {
        return Err(wrong(format!("it holds numbers of kind {:?}, {wanted} are needed", header.kind).into()));
    };
    let [rows, columns] = header.shape[..] else {
        let shape: Vec<String> = header.shape.iter().map(usize::to_string).collect();
        return Err(wrong(
            format!("its shape is ({}), but (rows, columns) is needed", shape.join(", ")).into(),
        ));
    };
    if columns == 0 {
        return Err(wrong("its rows have no values".into()));
    }
    // Check before allocating: the header may contain any numbers.
    let bytes = rows.checked_mul(columns).and_then(|count| count.checked_mul(size));
    if bytes.and_then(|bytes| u64::try_from(bytes).ok()?.checked_add(header.end)) != Some(length) {
        return Err(wrong(
            format!("it is {length} bytes long, which are not {rows} rows of {columns}").into(),
        ));
    }
    let mut values = Vec::with_capacity(rows * columns);
    let mut buffer = vec![0; AT_ONCE * size];
    while values.len() < rows * columns {
        let count = AT_ONCE.min(rows * columns - values.len());
        let buffer = &mut buffer[..count * size];
        reader.read_exact(buffer).map_err(|error| wrong(error.into()))?;
        if header.is_big_endian {
            buffer.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        values.extend(buffer.chunks_exact(size).map(of));
    }
    if header.by_columns {
        let by_columns = values;
        let row = |row: usize| by_columns.iter().skip(row).step_by(rows).copied();
        values = (0..rows).flat_map(row).collect();
    }
    Ok(Table { values, columns })
}

/// The header before the numbers.
struct Header {
    /// Type in numpy's notation without the byte order: `f4`.
    kind: String,
    is_big_endian: bool,
    by_columns: bool,
    shape: Vec<usize>,
    /// Position of the first number, in bytes.
    end: u64,
}

impl Header {
    fn read(reader: &mut impl Read) -> Result<Header, Cause> {
        let no_npy = |_| Cause::from("it is no .npy file");
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(no_npy)?;
        let (magic, version) = (&start[..6], start[6]);
        if magic != b"\x93NUMPY" {
            return Err("it is no .npy file".into());
        }
        // The header's length has 2 bytes in version 1, 4 in later versions.
        let digits = if version == 1 { 2 } else { 4 };
        let mut length = [0; 4];
        reader.read_exact(&mut length[..digits]).map_err(no_npy)?;
        let length = u64::from(u32::from_le_bytes(length));
        if !(1..=3).contains(&version) || length > HEADER_MOST {
            return Err(format!("it is a .npy file of an unknown version ({version})").into());
        }
        let mut text = String::new();
        reader.take(length).read_to_string(&mut text).map_err(no_npy)?;
        let header = Header::parse(&text, 8 + digits as u64 + length);
        header.ok_or_else(|| format!("its header can't be read: {}", text.trim()).into())
    }

    /// Parses a Python dict like `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
    fn parse(text: &str, end: u64) -> Option<Header> {
        let after = |key: &str| {
            let (_, rest) = text.split_once(&format!("'{key}'"))?;
            Some(rest.trim_start().strip_prefix(':')?.trim_start())
        };
        let (descr, _) = after("descr")?.strip_prefix('\'')?.split_once('\'')?;
        let kind = descr.trim_start_matches(['<', '>', '|', '=']);
        let (shape, _) = after("shape")?.strip_prefix('(')?.split_once(')')?;
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        Some(Header {
            kind: kind.to_owned(),
            is_big_endian: descr.starts_with('>'),
            by_columns: after("fortran_order")?.starts_with("True"),
            shape: sizes.map(|size| size.parse().ok()).collect::<Option<_>>()?,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in numpy's layout.
    fn npy(descr: &str, by_columns: bool, shape: &str, bytes: &[u8]) -> Vec<u8> {
        let order = if by_columns { "True" } else { "False" };
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
        let text = format!("{text:<117}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file.extend(bytes);
        file
    }

    fn at(file: &[u8]) -> tempfile::NamedTempFile {
        let place = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(place.path(), file).unwrap();
        place
    }

    #[track_caller]
    fn check(descr: &str, by_columns: bool, bytes: &[u8], expected: &[f32]) {
        let file = at(&npy(descr, by_columns, "(3, 2)", bytes));
        assert_eq!(read_floats(file.path()).unwrap(), Table { values: expected.to_vec(), columns: 2 });
    }

    #[track_caller]
    fn check_integers(descr: &str, bytes: &[u8], expected: &[i64]) {
        let file = at(&npy(descr, false, "(1, 2)", bytes));
        assert_eq!(read_integers(file.path()).unwrap(), Table { values: expected.to_vec(), columns: 2 });
    }

    #[track_caller]
    fn refused(file: &[u8], expected: &str) {
        let error = read_floats(at(file).path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    const VALUES: [f32; 6] = [1.0, -2.0, 0.5, 4.0, 65504.0, 6.0];

    #[test]
    fn floats_are_read_whatever_their_length_order_and_layout() {
        let all = |bytes: fn(f32) -> Vec<u8>| VALUES.into_iter().flat_map(bytes).collect::<Vec<u8>>();
        check("<f4", false, &all(|value| value.to_le_bytes().to_vec()), &VALUES);
        check(">f4", false, &all(|value| value.to_be_bytes().to_vec()), &VALUES);
        check("=f4", false, &all(|value| value.to_le_bytes().to_vec()), &VALUES);
        check("<f8", false, &all(|value| f64::from(value).to_le_bytes().to_vec()), &VALUES);
        check(">f8", false, &all(|value| f64::from(value).to_be_bytes().to_vec()), &VALUES);
        check("<f2", false, &all(|value| f16::from_f32(value).to_le_bytes().to_vec()), &VALUES);
        check(">f2", false, &all(|value| f16::from_f32(value).to_be_bytes().to_vec()), &VALUES);
        let by_columns: Vec<u8> =
            [0, 2, 4, 1, 3, 5].iter().flat_map(|&at| VALUES[at].to_le_bytes()).collect();
        check("<f4", true, &by_columns, &VALUES);
    }

    #[test]
    fn whole_numbers_are_read_whatever_their_length_and_sign() {
        check_integers("<i4", &[7, 0, 0, 0, 255, 255, 255, 255], &[7, -1]);
        check_integers("<u4", &[7, 0, 0, 0, 255, 255, 255, 255], &[7, 0xffff_ffff]);
        check_integers(">i4", &[0, 0, 0, 7, 255, 255, 255, 254], &[7, -2]);
        check_integers("<i8", &[[9, 0, 0, 0, 0, 0, 0, 0], [255; 8]].concat(), &[9, -1]);
        check_integers("<u8", &[[9, 0, 0, 0, 0, 0, 0, 0], [255; 8]].concat(), &[9, -1]);
    }

    #[test]
    fn what_is_no_table_of_floats_is_refused() {
        let zeros = |descr, shape| npy(descr, false, shape, &[0; 24]);
        refused(&zeros("<f4", "(6,)"), "its shape is (6), but (rows, columns) is needed");
        refused(&zeros("<f4", "(1, 2, 3)"), "its shape is (1, 2, 3)");
        refused(&zeros("<f4", "()"), "its shape is ()");
        refused(&zeros("<f4", "(6, 0)"), "no values");
        refused(&zeros("<i4", "(3, 2)"), "numbers of kind \"i4\"");
        refused(&zeros("<f4", "(3, 3)"), "not 3 rows of 3");
        refused(&zeros("<f4", "(1, 2)"), "not 1 rows of 2");
        refused(&zeros("<f4", "(4611686018427387904, 4)"), "not 4611686018427387904 rows");
        refused(&zeros("<f4", "(-1, 2)"), "header");
        refused(b"\x93NUMPY\x09\x00\x01\x00\x00\x00 ", "version (9)");
        refused(b"\x93NUMPY", "no .npy file");
        refused(b"no table", "no .npy file");
        refused(b"", "no .npy file");
    }

    #[test]
    fn a_table_without_rows_is_read() {
        let file = at(&npy("<f4", false, "(0, 5)", &[]));
        assert_eq!(read_floats(file.path()).unwrap(), Table { values: Vec::new(), columns: 5 });
    }
}
