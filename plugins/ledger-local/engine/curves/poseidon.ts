// The permutations of Poseidon (https://eprint.iacr.org/2019/458) and Poseidon2 (https://eprint.iacr.org/2023/323) over
// a prime field, with the given constants. Full rounds put every element through the S-box, then partial rounds only
// the first one, then full rounds follow again. Each step reports its number of operations before it runs, so a
// callback can abort by throwing.
import type { IField } from "@noble/curves/abstract/modular.js"

export interface Permutation {
  readonly field: IField<bigint>
  readonly size: number
  /** Rounds of either kind; the full ones are an even number. */
  readonly full: number
  readonly partial: number
  readonly adds: (times: number) => void
  readonly multiplies: (times: number) => void
  readonly powers: (times: number) => void
  /** Copies of single elements. */
  readonly copies: (times: number) => void
  /** A new list of `size` elements. */
  readonly collects: (size: number) => void
  /** A new list of the results of a step that may fail for each element. */
  readonly collectsResults: (size: number) => void
  /** Creates the error for parameters that do not fit together. */
  readonly refuse: (message: string) => Error
  readonly outOfBounds: (message: string) => Error
}

type State = Array<bigint>
type Row = ReadonlyArray<bigint>

const fifthPower = ({ field }: Permutation, element: bigint): bigint =>
  field.mul(field.sqr(field.sqr(element)), element)

const addConstants = (on: Permutation, state: Row, constants: Row): State => {
  if (state.length !== constants.length) throw on.refuse("length mismatch between input array and round constants")
  on.collectsResults(state.length)
  on.copies(state.length)
  on.adds(state.length)
  return state.map((element, i) => on.field.add(element, constants[i]!))
}

const boxAll = (on: Permutation, state: Row): State => {
  on.collectsResults(state.length)
  on.powers(state.length)
  return state.map((element) => fifthPower(on, element))
}

const boxFirst = (on: Permutation, state: State): void => {
  const [first] = state
  if (first === undefined) throw on.outOfBounds("Poseidon: the state is empty")
  on.powers(1)
  state[0] = fifthPower(on, first)
}

const multiplied = (on: Permutation, state: Row, matrix: ReadonlyArray<Row>): State => {
  if (matrix.length !== state.length) throw on.refuse("Poseidon: the matrix does not match the input's length")
  on.collects(state.length)
  const { field } = on
  return matrix.map((row) => {
    if (row.length !== state.length) throw on.refuse("Poseidon: a row of the matrix does not match the input's length")
    on.multiplies(row.length)
    on.adds(row.length)
    return row.reduce((sum, factor, i) => field.add(sum, field.mul(factor, state[i]!)), 0n)
  })
}

const checkInput = ({ size, refuse }: Permutation, input: Row): void => {
  if (input.length !== size) throw refuse("Poseidon: permutation input length does not match `t`")
}

export const poseidon = (
  on: Permutation,
  input: Row,
  matrix: ReadonlyArray<Row>,
  constants: ReadonlyArray<Row>
): State => {
  checkInput(on, input)
  copied(on, input)
  let state: State = [...input]
  for (const [round, row] of constants.entries()) {
    const isPartial = round >= on.full / 2 && round < on.full / 2 + on.partial
    state = addConstants(on, state, row)
    if (isPartial) boxFirst(on, state)
    else state = boxAll(on, state)
    state = multiplied(on, state, matrix)
  }
  return state
}

/** The network copies its input: the list, then its elements. */
const copied = (on: Permutation, input: Row): void => on.collects(input.length)

/** The cheap matrix of four by four on each four elements (section 5.1). */
const mixFours = (on: Permutation, state: State): void => {
  const { field } = on
  // Fourteen additions for each four, six of them of an element to a copy of itself.
  on.adds((14 * state.length) / 4)
  on.copies((6 * state.length) / 4)
  for (let at = 0; at < state.length; at += 4) {
    const [a, b, c, d] = state.slice(at, at + 4) as [bigint, bigint, bigint, bigint]
    const [ab, cd] = [field.add(a, b), field.add(c, d)]
    const bbcd = field.add(field.add(b, b), cd)
    const ddab = field.add(field.add(d, d), ab)
    const fourth = field.add(field.mul(cd, 4n), ddab)
    const second = field.add(field.mul(ab, 4n), bbcd)
    state.splice(at, 4, field.add(ddab, second), second, field.add(bbcd, fourth), fourth)
  }
}

const addSum = (on: Permutation, state: State): void => {
  on.adds(2 * state.length - 1)
  const sum = state.reduce((total, element) => on.field.add(total, element))
  for (const [i, element] of state.entries()) state[i] = on.field.add(element, sum)
}

const mixOuter = (on: Permutation, state: State): void => {
  const { field, size } = on
  if (size === 2 || size === 3) return addSum(on, state)
  if (size === 0 || size % 4 !== 0 || size > 24) throw on.refuse("Poseidon2: matmul_external unsupported state size")
  mixFours(on, state)
  if (size === 4) return
  on.collects(4)
  on.adds(size - 4 + size)
  const sums = [0, 1, 2, 3].map((l) =>
    state.reduce((sum, element, i) => (i % 4 === l ? field.add(sum, element) : sum), 0n)
  )
  for (const [i, element] of state.entries()) state[i] = field.add(element, sums[i % 4]!)
}

const mixInner = (on: Permutation, state: State, diagonal: Row): void => {
  const { field, size } = on
  if (size === 2 || size === 3) {
    // The last element counts twice more; the constants given are not used for these sizes.
    const last = state[size - 1]!
    addSum(on, state)
    on.copies(1)
    on.adds(1)
    state[size - 1] = field.add(state[size - 1]!, last)
    return
  }
  if (size === 0 || size % 4 !== 0 || size > 24) throw on.refuse("Poseidon2: matmul_internal unsupported state size")
  on.adds(2 * size - 1)
  on.multiplies(size)
  const sum = state.reduce((total, element) => field.add(total, element))
  for (const [i, element] of state.entries()) state[i] = field.add(field.mul(element, diagonal[i]!), sum)
}

export const poseidon2 = (on: Permutation, input: Row, diagonal: Row, constants: ReadonlyArray<Row>): State => {
  checkInput(on, input)
  copied(on, input)
  let state: State = [...input]
  mixOuter(on, state)
  for (const [round, row] of constants.entries()) {
    const isPartial = round >= on.full / 2 && round < on.full / 2 + on.partial
    if (!isPartial) {
      state = boxAll(on, addConstants(on, state, row))
      mixOuter(on, state)
      continue
    }
    const [constant] = row
    if (constant === undefined) throw on.outOfBounds("Poseidon2: round constant vector is empty")
    on.adds(1)
    state[0] = on.field.add(state[0]!, constant)
    boxFirst(on, state)
    mixInner(on, state, diagonal)
  }
  return state
}
