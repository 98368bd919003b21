// Random JSON as text, by a seed: nesting, unicode, large numbers and, optionally, repeated names.
import type { Random } from "../simulation/random.ts"

const strings = [
  "",
  "a",
  "é",
  "漢字",
  "😀",
  "\u0000",
  '"\\/',
  "\ud83d",
  "__proto__",
  "constructor",
  "line\u2028end",
  "ﷺ"
]
const exact = ["0", "-1", "1.5", "1e2", "0.1", "9007199254740991", "-2.5e-7", "1e300"]
const inexact = ["1917043659912705296", "1e400", "0.1234567890123456789", "9007199254740993", "-1e-400"]

export const randomJson = (
  random: Pick<Random, "int" | "pick" | "chance">,
  isExact: boolean,
  depth = random.int(0, 6)
): string => {
  const blank = random.pick(["", "", " ", "\n"])
  const many = () => Array.from({ length: random.int(0, 4) })
  const within = () => randomJson(random, isExact, depth - 1)
  switch (depth <= 0 ? random.int(0, 2) : random.int(0, 4)) {
    case 0:
      return random.pick(["null", "true", "false"])
    case 1:
      return random.pick(!isExact && random.chance(0.3) ? inexact : exact)
    case 2:
      return JSON.stringify(random.pick(strings).repeat(random.int(0, 3)))
    case 3:
      return `[${blank}${many().map(within).join(`,${blank}`)}]`
    default: {
      const names = many().map(() => random.pick(strings) + (isExact || random.chance(0.8) ? random.int(0, 1e9) : ""))
      const members = [...new Set(names)].map((name) => `${JSON.stringify(name)}:${blank}${within()}`)
      if (!isExact && names[0] !== undefined && random.chance(0.3)) members.push(`${JSON.stringify(names[0])}:1`)
      return `{${blank}${members.join(",")}}`
    }
  }
}
