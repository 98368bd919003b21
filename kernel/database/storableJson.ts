// JSON for a statement's `jsonb` that contains text of third parties. PostgreSQL refuses NUL and half a surrogate pair
// there, and a statement often writes the rows of many callers: one such character would fail all of them, on every
// retry. Each becomes U+FFFD. Text that is cut to a length can end with half a pair. Pure.

/** In the output of `JSON.stringify`: the escape of either, behind an even number of backslashes. */
const refused = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g

export const storableJson = (value: unknown): string => {
  const text = JSON.stringify(value)
  return text.includes("\\u") ? text.replace(refused, "$1\ufffd") : text
}
