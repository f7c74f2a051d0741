//! Takes outputs that nobody asks for out of a model's file. The encoder has one for each layer, what it paid attention to, and all of them stay in memory until
//! its run ends: 430 MB for the model `base`.
//!
//! A file is a protobuf message: fields, each with its number, and its length if it holds other fields.

/// The field of a model that holds its graph, and that of a graph that holds an output.
const GRAPH: u64 = 7;
const OUTPUT: u64 = 12;
/// The field of an output that holds its name.
const NAME: u64 = 1;

/// The model with only this output. None: the bytes are no model.
pub fn with_output(model: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut slim = Vec::with_capacity(model.len());
    for field in Fields(model) {
        let field = field?;
        if field.number != GRAPH {
            slim.extend_from_slice(field.whole);
            continue;
        }
        let mut graph = Vec::with_capacity(field.content.len());
        for field in Fields(field.content) {
            let field = field?;
            let is_wanted = |name_of: Field<'_>| name_of.number == NAME && name_of.content == name.as_bytes();
            if field.number != OUTPUT || Fields(field.content).flatten().any(is_wanted) {
                graph.extend_from_slice(field.whole);
            }
        }
        slim.push((GRAPH << 3 | 2) as u8);
        write_number(graph.len() as u64, &mut slim);
        slim.append(&mut graph);
    }
    Some(slim)
}

struct Field<'a> {
    number: u64,
    /// Without its head. Empty if it is a number.
    content: &'a [u8],
    whole: &'a [u8],
}

/// The fields of a message. `None` among them: it is none.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<Field<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| {
            let field = field(self.0);
            self.0 = field.as_ref().map_or(&[], |field| &self.0[field.whole.len()..]);
            field
        })
    }
}

fn field(bytes: &[u8]) -> Option<Field<'_>> {
    let mut rest = bytes;
    let key = read_number(&mut rest)?;
    let length = match key & 7 {
        0 => {
            read_number(&mut rest)?;
            0
        }
        1 => 8,
        2 => usize::try_from(read_number(&mut rest)?).ok()?,
        5 => 4,
        _ => return None,
    };
    let content = rest.get(..length)?;
    let whole = bytes.len() - rest.len() + length;
    Some(Field { number: key >> 3, content, whole: &bytes[..whole] })
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let length = bytes.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (number, rest) = bytes.split_at(length);
    *bytes = rest;
    Some(number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f)))
}

fn write_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field that holds others.
    fn holds(number: u64, content: &[u8]) -> Vec<u8> {
        let mut field = vec![(number << 3 | 2) as u8];
        write_number(content.len() as u64, &mut field);
        [field, content.to_vec()].concat()
    }

    #[test]
    fn one_output_stays_and_everything_else_as_it_was() {
        let node = holds(1, &[7; 300]);
        let output = |name: &str| holds(OUTPUT, &[holds(NAME, name.as_bytes()), holds(2, b"shape")].concat());
        let version = [1 << 3, 0x96, 0x01];
        let model =
            |outputs: &[Vec<u8>]| [&version[..], &holds(GRAPH, &[&node[..], &outputs.concat()].concat())].concat();
        let all = model(&[output("attention.0"), output("heard"), output("attention.1")]);
        assert_eq!(with_output(&all, "heard"), Some(model(&[output("heard")])));
        assert_eq!(with_output(&all, "nothing"), Some(model(&[])));
    }

    #[test]
    fn other_bytes_are_no_model() {
        for bytes in [&[0x3a, 0x05, 0x00][..], &[0xff; 12], &[0x0b], &[0x3a, 0x01, 0x80]] {
            assert_eq!(with_output(bytes, "heard"), None, "{bytes:?}");
        }
    }
}
