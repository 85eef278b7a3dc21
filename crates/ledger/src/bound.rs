//! What is bound to statements: the few kinds of values that every engine has columns for.

use std::borrow::Cow;

/// What is bound to a statement; `None` is null.
#[derive(Clone, Debug)]
pub(crate) enum Value<'q> {
    /// A truth.
    Bool(Option<bool>),
    /// An integer of 32 bits.
    Int(Option<i32>),
    /// An integer of 64 bits.
    Long(Option<i64>),
    /// Text.
    Text(Option<Cow<'q, str>>),
    /// Bytes.
    Bytes(Option<Cow<'q, [u8]>>),
    /// Ends a condition on a column: it is one of these integers,
    AmongLongs(Vec<i64>),
    /// or one of these runs of bytes.
    AmongBytes(Vec<Vec<u8>>),
}

/// What can be bound.
pub(crate) trait Bind<'q> {
    /// The null of its kind.
    const NULL: Value<'q>;

    /// The value.
    fn value(self) -> Value<'q>;
}

/// Types that are bound as they are.
macro_rules! bind {
    ($kind:ident: $($type:ty, $value:ident => $bound:expr;)+) => {
        $(impl<'q> Bind<'q> for $type {
            const NULL: Value<'q> = Value::$kind(None);

            fn value(self) -> Value<'q> {
                let $value = self;
                Value::$kind(Some($bound))
            }
        })+
    };
}

bind!(Bool: bool, value => value; &bool, value => *value;);
bind!(Int: i32, value => value;);
bind!(Long: i64, value => value; &i64, value => *value;);
bind!(Text:
    &'q str, text => Cow::Borrowed(text);
    &'q String, text => Cow::Borrowed(text.as_str());
    String, text => Cow::Owned(text);
);
bind!(Bytes:
    &'q [u8], bytes => Cow::Borrowed(bytes);
    Vec<u8>, bytes => Cow::Owned(bytes);
);

impl<'q, T: Bind<'q>> Bind<'q> for Option<T> {
    const NULL: Value<'q> = T::NULL;

    fn value(self) -> Value<'q> {
        self.map_or(T::NULL, Bind::value)
    }
}

impl<'q> Bind<'q> for &'q Option<String> {
    const NULL: Value<'q> = Value::Text(None);

    fn value(self) -> Value<'q> {
        self.as_ref().value()
    }
}

/// Types that can be bound as one of many.
pub(crate) trait Among: Sized {
    /// The condition's end.
    fn among(values: Vec<Self>) -> Value<'static>;
}

impl Among for i64 {
    fn among(values: Vec<Self>) -> Value<'static> {
        Value::AmongLongs(values)
    }
}

impl Among for Vec<u8> {
    fn among(values: Vec<Self>) -> Value<'static> {
        Value::AmongBytes(values)
    }
}
