// `npm run weight`: the size of the committed tree, and with `--beside COMMIT` that of another commit in a second
// column. Lines are those of sources that we write: TypeScript, JavaScript, SQL and styles. An export counts as unused
// if its name appears in no other source.
import { execFileSync } from "node:child_process"
import { parseArgs } from "node:util"
import { root } from "../../runtime/bootstrap.mjs"

const product = ["kernel", "plugins", "runtime", "migrations"]
const sources = /\.(ts|tsx|mjs|js|sql|css)$/
/** A file with fewer lines counts as small. */
const smallBelow = 20
const exported = /^export (?:abstract )?(?:const|function|class|interface|type|enum|namespace) (\w+)/gm
const word = /[A-Za-z_$][\w$]*/g

interface Source {
  readonly path: string
  readonly text: string
  readonly lines: number
}

const git = (args: ReadonlyArray<string>, input?: string): Buffer =>
  execFileSync("git", args, { cwd: root, input, maxBuffer: 2 ** 30 })

/** The sources of a commit, read by one process. */
const sourcesOf = (commit: string): ReadonlyArray<Source> => {
  const paths = git(["ls-tree", "-r", "--name-only", commit])
    .toString("utf8")
    .split("\n")
    .filter((path) => sources.test(path))
  const bytes = git(["cat-file", "--batch"], paths.map((path) => `${commit}:${path}\n`).join(""))
  let at = 0
  return paths.map((path) => {
    const end = bytes.indexOf("\n", at)
    const size = Number(bytes.toString("utf8", at, end).split(" ").at(-1))
    const text = bytes.toString("utf8", end + 1, end + 1 + size)
    at = end + 1 + size + 1
    return { path, text, lines: text.split("\n").length - 1 }
  })
}

const isIn = (folders: ReadonlyArray<string>) => (source: Source) =>
  folders.some((folder) => source.path.startsWith(`${folder}/`))

const sum = (all: ReadonlyArray<Source>): number => all.reduce((lines, one) => lines + one.lines, 0)

const unusedExports = (all: ReadonlyArray<Source>): number => {
  const users = new Map<string, Set<string>>()
  for (const { path, text } of all)
    for (const name of new Set(text.match(word))) {
      const paths = users.get(name)
      if (paths === undefined) users.set(name, new Set([path]))
      else paths.add(path)
    }
  return all
    .filter(isIn(product))
    .flatMap(({ text }) => [...text.matchAll(exported)])
    .filter(([, name]) => users.get(name!)!.size === 1).length
}

const figuresOf = (commit: string): ReadonlyArray<readonly [string, number]> => {
  const all = sourcesOf(commit)
  const ours = all.filter(isIn(product))
  const tests = all.filter(isIn(["test"]))
  const lengths = ours.map(({ lines }) => lines).sort((a, b) => a - b)
  return [
    ["lines of the product", sum(ours)],
    ["lines of examples", sum(all.filter(isIn(["examples"])))],
    ["lines of tests", sum(tests)],
    ["files of the product", ours.length],
    [`of these below ${smallBelow} lines`, lengths.filter((lines) => lines < smallBelow).length],
    ["median lines of a file", lengths[Math.floor(lengths.length / 2)] ?? 0],
    ["files of tests", tests.length],
    ["exports that no other source names", unusedExports(all)]
  ]
}

const { values } = parseArgs({ options: { beside: { type: "string" } } })
const before = values.beside === undefined ? undefined : figuresOf(values.beside)
if (before !== undefined)
  console.log(`${"".padEnd(40)}${"HEAD".padStart(10)}${values.beside!.slice(0, 9).padStart(12)}`)
for (const [at, [name, figure]] of figuresOf("HEAD").entries()) {
  const other = before === undefined ? "" : String(before[at]![1]).padStart(12)
  console.log(`${name.padEnd(40)}${String(figure).padStart(10)}${other}`)
}
