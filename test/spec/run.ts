// `npm run spec`: how many of the specification's requirements the tests prove, section by section. `npm run spec --
// --missing` lists those without a test, `-- --where` the tests for each. The last line is the figure.
import { readText, sourcesIn } from "../architecture/sources.ts"
import { citationsOf } from "./citations.ts"
import { requirements, sections } from "./sections.ts"

const has = (flag: string) => process.argv.includes(flag)

const words: ReadonlyMap<number, string> = new Map(
  [...readText("test/spec/requirements.md").matchAll(/^- \*\*S(\d+)\*\* (.*)$/gm)].map(([, number, text]) => [
    Number(number),
    text ?? ""
  ])
)

const shown = Map.groupBy(
  sourcesIn("test")
    .filter(({ path }) => !path.startsWith("test/spec/"))
    .flatMap(citationsOf),
  ({ requirement }) => requirement
)

for (const { from, title, to } of sections) {
  const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index)
  const covered = numbers.filter((number) => shown.has(number))
  console.log(
    `${title.slice(0, 72).padEnd(74)}${String(covered.length).padStart(3)} of ${String(numbers.length).padStart(2)}`
  )
  for (const number of numbers) {
    const tests = shown.get(number)
    if (has("--missing") && tests === undefined) console.log(`    S${number} ${words.get(number) ?? ""}`)
    if (has("--where") && tests !== undefined)
      console.log(`    S${number} ${[...new Set(tests.map(({ at }) => at))].join(", ")}`)
  }
}
console.log(`spec: ${shown.size} of ${requirements}`)
