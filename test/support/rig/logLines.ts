// What a program logs, as a person reads it: the message of each line of JSON, and other lines as they are.

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
