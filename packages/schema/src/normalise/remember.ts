/** Senders repeat their values, and some take long to read. */
const maxRemembered = 1_000;

/** Returns the function with a memory. It is not for what is a guest's own, such as a phone number. */
export function remember<Value>(read: (text: string) => Value): (text: string) => Value {
  const values = new Map<string, Value>();
  return (text) => {
    const known = values.get(text);
    if (known !== undefined || values.has(text)) return known as Value;
    const value = read(text);
    if (values.size === maxRemembered) values.clear();
    values.set(text, value);
    return value;
  };
}
