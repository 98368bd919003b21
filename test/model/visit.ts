// Visits every reachable state of a small model once, breadth first, so that the first history that breaks an invariant
// is a shortest one.

export interface Step<S> {
  readonly did: string
  readonly to: S
  readonly broken?: string | undefined
}

export interface Visited {
  readonly states: number
  /** A shortest history that breaks an invariant, and then that invariant. */
  readonly broken: ReadonlyArray<string> | undefined
}

/** A model breaks an invariant if the product lacks one of the rules. */
export interface Model {
  readonly name: string
  readonly rules: ReadonlyArray<string>
  readonly explore: (withoutRule?: string) => Visited
}

export const visit = <S>(
  start: S,
  stepsOf: (state: S) => Iterable<Step<S>>,
  issueOf: (state: S) => string | undefined
): Visited => {
  const from = new Map<string, { readonly before: string | undefined; readonly did: string }>()
  const historyOf = (key: string | undefined): ReadonlyArray<string> =>
    key === undefined ? [] : [...historyOf(from.get(key)!.before), from.get(key)!.did]
  let frontier: ReadonlyArray<S> = [start]
  from.set(JSON.stringify(start), { before: undefined, did: "start" })
  while (frontier.length > 0) {
    const next: Array<S> = []
    for (const state of frontier) {
      const before = JSON.stringify(state)
      for (const { broken, did, to } of stepsOf(state)) {
        const what = broken ?? issueOf(to)
        if (what !== undefined) return { states: from.size, broken: [...historyOf(before), did, what] }
        const key = JSON.stringify(to)
        if (from.has(key)) continue
        from.set(key, { before, did })
        next.push(to)
      }
    }
    frontier = next
  }
  return { states: from.size, broken: undefined }
}
