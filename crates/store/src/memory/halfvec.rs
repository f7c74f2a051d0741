//! Vectors as pgvector stores them: half precision, sent in its binary form.

use half::f16;
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, Postgres};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfVec(Vec<u8>);

impl HalfVec {
    pub fn new(values: &[f32]) -> Self {
        let dim = u16::try_from(values.len()).unwrap_or(u16::MAX);
        let mut bytes = Vec::with_capacity(4 + 2 * values.len());
        bytes.extend(dim.to_be_bytes());
        bytes.extend([0, 0]); // reserved
        for value in values {
            bytes.extend(f16::from_f32(*value).to_bits().to_be_bytes());
        }
        Self(bytes)
    }
}

impl sqlx::Type<Postgres> for HalfVec {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("halfvec")
    }
}

impl PgHasArrayType for HalfVec {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("_halfvec")
    }
}

impl Encode<'_, Postgres> for HalfVec {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_its_length_and_its_halves_most_significant_byte_first() {
        for (values, expected) in [
            (vec![], vec![0, 0, 0, 0]),
            (vec![1.0], vec![0, 1, 0, 0, 0x3c, 0]),
            (vec![-2.0, 0.5, 0.0], vec![0, 3, 0, 0, 0xc0, 0, 0x38, 0, 0, 0]),
            (vec![70_000.0], vec![0, 1, 0, 0, 0x7c, 0]), // larger than a half can be: infinity
        ] {
            assert_eq!(HalfVec::new(&values).0, expected, "{values:?}");
        }
        assert_eq!(HalfVec::new(&[0.0; 300]).0[..4], [1, 44, 0, 0]);
    }
}
