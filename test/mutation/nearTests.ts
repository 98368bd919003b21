// The tests near a source: by the number of imports between them, by folders of the same name, and by whether the test
// names an export or the file. Process tests that start the program by its path reach every source.
import { basename, dirname, posix } from "node:path"
import { type Source, sources } from "../architecture/sources.ts"

/** Imports between a source and a process test that starts the program. */
const startedDistance = 8

const importersOf = (): ReadonlyMap<string, ReadonlyArray<string>> => {
  const importers = new Map<string, Array<string>>()
  for (const { imports, path } of sources)
    for (const name of imports) {
      if (!name.startsWith(".")) continue
      const imported = posix.join(dirname(path), name)
      importers.set(imported, [...(importers.get(imported) ?? []), path])
    }
  return importers
}

const importers = importersOf()
const tests = sources.filter(({ path }) => path.endsWith(".test.ts") && !/^test\/(architecture|official)\//.test(path))

const distancesFrom = (path: string): ReadonlyMap<string, number> => {
  const distances = new Map([[path, 0]])
  for (const [at, distance] of distances)
    for (const importer of importers.get(at) ?? []) if (!distances.has(importer)) distances.set(importer, distance + 1)
  return distances
}

const exportsOf = ({ text }: Source): ReadonlyArray<string> =>
  [...text.matchAll(/^export (?:const|class|interface|type) (\w+)/gm)].map(([, name]) => name!)

const commonFolders = (source: string, test: string): number => {
  const [own, others] = [dirname(source).split("/"), dirname(test).split("/").slice(1)]
  const differing = own.findIndex((name, at) => name !== others[at])
  return (differing === -1 ? own.length : differing) / own.length
}

const wordsOf = ({ path, text }: Source): ReadonlySet<string> =>
  new Set(`${path} ${text}`.match(/[A-Z]?[a-z]{3,}/g)?.map((word) => word.toLowerCase()))

/** Words of a file's name. */
const nameWords = (path: string): ReadonlyArray<string> =>
  basename(path)
    .replace(/\.((daily|slow)\.)?(test\.)?ts$/, "")
    .split(/(?=[A-Z])/)
    .map((word) => word.toLowerCase())

const testWords = tests.map(wordsOf)
/** A rare word weighs more. */
const weightOf = new Map<string, number>()
for (const words of testWords) for (const word of words) weightOf.set(word, (weightOf.get(word) ?? 0) + 1)
for (const [word, count] of weightOf) weightOf.set(word, Math.log(tests.length / count))
const sumOf = (words: Iterable<string>): number =>
  Array.from(words, (word) => weightOf.get(word) ?? 0).reduce((a, b) => a + b, 0)

/** From 0 to 1: the words that a source and a test have in common. */
const similarity = (source: ReadonlySet<string>, test: ReadonlySet<string>): number =>
  sumOf([...source].filter((word) => test.has(word))) / Math.sqrt(sumOf(source) * sumOf(test))

/** Test files, the nearest first. */
interface NearTests {
  readonly fast: Array<string>
  readonly processes: Array<string>
  readonly slow: Array<string>
}

const kindOf = (path: string): keyof NearTests =>
  path.endsWith(".daily.test.ts") ? "processes" : path.endsWith(".slow.test.ts") ? "slow" : "fast"

/** The test files that reach a source. */
export const nearTests = (source: Source): NearTests => {
  const distances = distancesFrom(source.path)
  const names = new RegExp(`\\b(${[basename(source.path, ".ts"), ...exportsOf(source)].join("|")})\\b`, "i")
  const [words, ownWords] = [wordsOf(source), nameWords(source.path)]
  const ranked = tests
    .flatMap(({ path, text }, at) => {
      const kind = kindOf(path)
      const isProcess = kind !== "fast"
      const distance = Math.min(distances.get(path) ?? Infinity, isProcess ? startedDistance : Infinity)
      const isNamesake = nameWords(path).some((word) => ownWords.includes(word))
      const named = (isNamesake ? 2 : 0) + (names.test(text) ? 2 : 0)
      const common = commonFolders(source.path, path)
      // Tests of another folder that start a whole program are far.
      if (distance === Infinity || (!isProcess && distance > 4 && named === 0 && common === 0)) return []
      return [{ path, kind, score: distance - 4 * common - named - 12 * similarity(words, testWords[at]!) }]
    })
    .toSorted((a, b) => a.score - b.score)
  const pathsOf = (kind: keyof NearTests) => ranked.filter((one) => one.kind === kind).map(({ path }) => path)
  return { fast: pathsOf("fast"), processes: pathsOf("processes"), slow: pathsOf("slow") }
}
