// What word was meant by one that nobody knows: a known one a slip away (a letter less, more or other, or two swapped),
// the commonest of such. As elsewhere the first letter is believed. Two slips make a word of too many others: what was
// meant by those is told by the words that listings hold. Pure, in a tenth of a millisecond or so.

/** A shorter word with a slip may be too many words. */
const lengthMin = 5
const lengthMax = 24
const letters = "abcdefghijklmnopqrstuvwxyz"

const oneSlipFrom = (word: string): ReadonlyArray<string> => {
  const all: Array<string> = []
  for (let at = 1; at <= word.length; at++) {
    const [head, tail] = [word.slice(0, at), word.slice(at)]
    if (tail !== "") all.push(head + tail.slice(1))
    if (tail.length > 1) all.push(head + tail[1]! + tail[0]! + tail.slice(2))
    for (const letter of letters) {
      all.push(head + letter + tail)
      if (tail !== "") all.push(head + letter + tail.slice(1))
    }
  }
  return all
}

/** The likeliest of `words`, which stand in the order of their frequency; `places` tells where. */
export const spelled = (
  word: string,
  words: ReadonlyArray<string>,
  places: Pick<ReadonlyMap<string, number>, "get">
): string | undefined => {
  if (word.length < lengthMin || word.length > lengthMax || !/^[a-z]+$/.test(word)) return undefined
  let first = words.length
  for (const one of oneSlipFrom(word)) first = Math.min(first, places.get(one) ?? words.length)
  return words[first]
}
