// A program's log as a person reads it: the message of each JSON line, and other lines unchanged.

const sentenceOf = (line: string): string => {
  try {
    return String(JSON.parse(line).message ?? line)
  } catch {
    return line
  }
}

/** The sentences that match, in order. */
export const sentencesIn = (text: string, wanted: RegExp): ReadonlyArray<string> =>
  text
    .split("\n")
    .map(sentenceOf)
    .filter((sentence) => wanted.test(sentence))
