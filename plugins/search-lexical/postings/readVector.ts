// Reads the text of a tsvector: `'lexeme':1A,3B 'other':2`. Pure.

/** Weights of the fields A, B, C and D, in eighths. */
const eighths: Readonly<Record<string, number>> = { A: 8, B: 4, C: 6 }
const eighthsOfExamples = 1

/** PostgreSQL's limit of positions in a lexeme, and ours of a frequency: both fit a byte. */
export const byteMax = 255

const [quote, backslash, colon, comma, nine, zero] = [39, 92, 58, 44, 57, 48]

/** Receives one lexeme: its weighted frequency in eighths, and its positions. The array of positions is reused. */
type TakeLexeme = (lexeme: string, frequency: number, positions: ReadonlyArray<number>) => void

/** The end of a quoted lexeme, and whether it has escapes. */
const endOf = (text: string, from: number): readonly [end: number, isEscaped: boolean] => {
  let isEscaped = false
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === backslash || (code === quote && text.charCodeAt(at + 1) === quote)) {
      isEscaped = true
      at += 1
    } else if (code === quote) return [at, isEscaped]
  }
  return [text.length, isEscaped]
}

export const readVector = (text: string, take: TakeLexeme): void => {
  const positions: Array<number> = []
  let at = 0
  while (at < text.length) {
    const [end, isEscaped] = endOf(text, at + 1)
    const quoted = text.slice(at + 1, end)
    const lexeme = isEscaped ? quoted.replace(/''|\\(.)/g, (all, one?: string) => one ?? all[0]!) : quoted
    at = end + 1
    positions.length = 0
    let frequency = 0
    if (text.charCodeAt(at) === colon)
      do {
        let position = 0
        let code = text.charCodeAt((at += 1))
        for (; code >= zero && code <= nine; code = text.charCodeAt((at += 1))) position = 10 * position + code - zero
        const weight = eighths[text[at] ?? ""]
        if (weight !== undefined) at += 1
        frequency += weight ?? eighthsOfExamples
        if (positions.length < byteMax) positions.push(position)
      } while (text.charCodeAt(at) === comma)
    take(lexeme, Math.min(byteMax, Math.max(1, frequency)), positions)
    at += 1
  }
}
