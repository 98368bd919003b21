// Structure-aware changes of honest inputs: JSON by its places, text by its characters and separators, bytes by their
// words. Every input of a target comes from its samples through these.
import type { Dice } from "./Dice.ts"

const strangeText = ["", " ", "0", "-1", "__proto__", "constructor", "\u0000", "\ud800", "\u202e", "é".repeat(300)]

const strangeValues = (dice: Dice): unknown =>
  dice.pick<unknown>([
    null,
    true,
    0,
    -1,
    1.5,
    2 ** 53,
    1e308,
    String(dice.edgy()),
    dice.pick(strangeText),
    "x".repeat(dice.below(20_000)),
    [],
    {},
    Array.from({ length: dice.below(200) }, () => null),
    nested(dice.below(400))
  ])

const nested = (depth: number): unknown => {
  let value: unknown = 1
  for (let index = 0; index < depth; index++) value = index % 2 === 0 ? [value] : { a: value }
  return value
}

type Fields = Record<string, unknown>
const isContainer = (value: unknown): value is Fields => typeof value === "object" && value !== null

/** Every container of a value, itself first. */
const containersOf = (value: unknown): ReadonlyArray<Fields> =>
  isContainer(value) ? [value, ...Object.values(value).flatMap(containersOf)] : []

/** Changes one to four places of a copy; strings may also be changed inside. */
export const mutateJson = (dice: Dice, sample: unknown): unknown => {
  const whole = { root: structuredClone(sample) }
  for (let changes = 1 + dice.below(4); changes > 0; changes--) {
    const container = dice.pick(containersOf(whole))
    const key = dice.pick([...Object.keys(container), Array.isArray(container) ? String(container.length) : "extra"])
    const value = container[key]
    if (typeof value === "string" && !dice.onceIn(3)) container[key] = mutateText(dice, value)
    else if (dice.onceIn(4) && !Array.isArray(container)) delete container[key]
    else if (dice.onceIn(6) && !Array.isArray(container)) {
      // As the parser of JSON does: a key named __proto__ is an own member.
      const descriptor = { value, enumerable: true, configurable: true, writable: true }
      Object.defineProperty(container, dice.pick(strangeText), descriptor)
    } else
      container[key] = dice.onceIn(5)
        ? structuredClone(dice.pick([sample, ...containersOf(sample)]))
        : strangeValues(dice)
  }
  return whole.root
}

/** Cuts, repeats, swaps or replaces a part of a text. */
export const mutateText = (dice: Dice, sample: string): string => {
  let text = sample
  for (let changes = 1 + dice.below(3); changes > 0; changes--) {
    const [at, length] = [dice.below(text.length + 1), 1 + dice.below(8)]
    const [before, part, after] = [text.slice(0, at), text.slice(at, at + length), text.slice(at + length)]
    text = dice.pick([
      () => before + after,
      () => before + part.repeat(1 + dice.below(40)) + after,
      () => before + dice.pick(strangeText) + after,
      () => before + String.fromCharCode(dice.below(0x300)) + part + after,
      () => after + part + before,
      () => before + String(dice.edgy()) + after,
      () => before
    ])()
  }
  return text.slice(0, 100_000)
}

/** Flips bits, overwrites words with edge values, cuts, inserts and repeats. */
export const mutateBytes = (dice: Dice, sample: Uint8Array): Uint8Array => {
  let bytes = Uint8Array.from(sample)
  for (let changes = 1 + dice.below(4); changes > 0; changes--) {
    const at = dice.below(Math.max(1, bytes.length)) & (dice.onceIn(3) ? ~0 : ~3)
    if (dice.onceIn(3) && at < bytes.length) bytes[at]! ^= 1 << dice.below(8)
    else if (dice.onceIn(2) && at + 4 <= bytes.length)
      new DataView(bytes.buffer).setUint32(at, Number(BigInt.asUintN(32, dice.edgy())))
    else if (dice.onceIn(2)) bytes = bytes.slice(0, at)
    else {
      const part = bytes.slice(at, at + 4 * (1 + dice.below(8)))
      const many = Array.from({ length: 1 + dice.below(dice.onceIn(20) ? 2_000 : 4) }, () => part)
      bytes = Uint8Array.from(Buffer.concat([bytes.slice(0, at), ...many, bytes.slice(at)]))
    }
  }
  return bytes
}
