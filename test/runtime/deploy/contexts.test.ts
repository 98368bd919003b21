// Everything that leaves this machine: the image's build context, the package, a commit. None of them includes the
// files that the guides create in the project's folder. The test plants such files in a separate folder, with this
// project's own rules.
import { expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const planted = ["", "runtime/deploy/", "runtime/dist/", "examples/", "examples/guides/", "kernel/"].flatMap((folder) =>
  [
    "secrets/sponsor_secret",
    "secrets/api_keys",
    ".tollkeeper/running/1.json",
    ".tollkeeper/ledger/ledger-cert.pem",
    ".env",
    ".env.local",
    "seller.pem",
    "sponsor.key",
    "tollkeeper.tar",
    "tollkeeper.dump"
  ].map((name) => folder + name)
)
const wanted = ["runtime/deploy/compose.yaml", "examples/guides/operator.md", "LICENSE"]

/** The pattern of a line of .dockerignore: it names a file, or a folder with all below it. */
const patternOf = (line: string): RegExp => {
  const source = line
    .replace(/[.+^$()[\]{}|]/g, "\\$&")
    .replace(/\*\*\/|\*/g, (stars) => (stars === "*" ? "[^/]*" : "(?:.*/)?"))
  return new RegExp(`^${source}(?:/.*)?$`)
}

/** The files that a build sends: the last line that matches decides. */
const contextOf = (paths: ReadonlyArray<string>, rules: string): ReadonlyArray<string> => {
  const lines = rules.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
  return paths.filter((path) => {
    const last = lines.findLast((line) => patternOf(line.replace(/^!/, "")).test(path))
    return last === undefined || last.startsWith("!")
  })
}

const withPlanted = <A>(use: (folder: string) => A): A => {
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-contexts-"))
  try {
    for (const path of [...planted, ...wanted]) {
      mkdirSync(join(folder, dirname(path)), { recursive: true })
      writeFileSync(join(folder, path), "text")
    }
    for (const name of ["package.json", ".gitignore"]) copyFileSync(join(root, name), join(folder, name))
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

it("the build context of the image has no secret, state, key or backup", () => {
  const rules = readFileSync(join(root, ".dockerignore"), "utf8")
  expect(contextOf([...planted, ...wanted], rules)).toEqual(wanted)
  // The earlier rules.
  expect(contextOf(planted, "*\n!runtime\n**/.tollkeeper")).toContain("runtime/deploy/secrets/sponsor_secret")
})

it("the package has no secret, state, key or backup", () => {
  const listed = withPlanted((cwd) =>
    execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd, encoding: "utf8", stdio: "pipe" })
  )
  const packed = (JSON.parse(listed)[0].files as ReadonlyArray<{ path: string }>).map(({ path }) => path)
  expect(packed.filter((path) => planted.includes(path))).toEqual([])
  expect(packed).toContain("examples/guides/operator.md")
})

it("a commit has no secret, state, key or backup", () => {
  const added = withPlanted((cwd) => {
    execFileSync("git", ["init", "--quiet"], { cwd })
    return execFileSync("git", ["ls-files", "--others", "--exclude-standard"], { cwd, encoding: "utf8" }).split("\n")
  })
  expect(added.filter((path) => planted.includes(path))).toEqual([])
  expect(added).toContain("examples/guides/operator.md")
})

it("commands for a container name the state folder of its process", () => {
  const files = ["README.md", "Dockerfile", "compose.yaml"].map((name) =>
    readFileSync(join(root, "runtime/deploy", name), "utf8")
  )
  const [, state] = /CMD \["start",.*"--state", "([^"]+)"\]/.exec(files[1]!) ?? []
  const commands = files.flatMap((text) =>
    [...text.matchAll(/docker (?:compose .*)?exec [^`\n]*/g)].map(([one]) => one)
  )
  expect(commands).toHaveLength(3)
  for (const command of commands) expect(command).toContain(`--state ${state}`)
})
