// Suggests the probably intended name: the nearest existing name, if a typing error explains the difference.

/** Number of letters to add, remove, change or swap. */
const distance = (a: string, b: string): number => {
  const rows: Array<ReadonlyArray<number>> = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const above = rows[i - 1]!
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, rows[i - 2]![j - 2]! + 1)
      row.push(least)
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}

const lengthMax = 64

/** The nearest of `known`; undefined unless a name is near enough for a typing error, or one begins with the other. */
export const didYouMean = (written: string, known: Iterable<string>): string | undefined => {
  if (written.length > lengthMax) return undefined
  const most = Math.max(1, Math.floor(written.length / 3))
  let best: { readonly name: string; readonly at: number } | undefined
  for (const name of known) {
    const isPart = written.length >= 4 && (name.startsWith(written) || written.startsWith(name))
    const at = isPart ? Math.min(1, distance(written, name)) : distance(written, name)
    if (at <= most && (best === undefined || at < best.at)) best = { name, at }
  }
  return best?.name
}

/** "; did you mean X?", or nothing. */
export const suggestionSuffix = (written: string, known: Iterable<string>): string => {
  const name = didYouMean(written, known)
  return name === undefined ? "" : `; did you mean ${name}?`
}
