// How a guide's blocks are classified; `npm run guides` runs them.
import { describe, expect, it } from "vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../runtime/bootstrap.mjs"
import { blocksOf, commandsBySection, missingIn, pathsOf, stepsOf } from "./blocks.ts"

const fenced = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`

describe("a block", () => {
  it("is run, written, parsed or left out by what a reader sees", () => {
    const page = [
      fenced("sh", "echo one"),
      fenced("js", "// seller.mjs\nconsole.log(1)"),
      fenced("json", `{"a":1}`),
      fenced("sh", "# not run here: needs a cluster\nkubectl apply -f x"),
      "A drawing:\n",
      fenced("text", "+--+"),
      fenced("js", "console.log(2)")
    ].join("\n")
    expect(blocksOf(page).map(({ kind }) => kind)).toEqual([
      "commands",
      "file",
      "data",
      "not-run",
      "drawing",
      "invalid"
    ])
  })

  it("of text below commands is their output, and reports missing lines", () => {
    const [block] = blocksOf(`${fenced("sh", "date")}\n${fenced("text", "at … o'clock\nnever")}`)
    expect(block).toMatchObject({ kind: "commands", shows: "at … o'clock\nnever" })
    expect(missingIn("it is  at 12 o'clock", "at … o'clock\nnever")).toEqual(["never"])
    expect(missingIn("one\ntwo", "o…e\ntwo")).toEqual([])
  })
})

describe("a block of commands", () => {
  it("leaves a program running where marked, and continues with the next line", () => {
    expect(
      stepsOf(
        "cd shop\nnode a.mjs \\\n  --x    # leave it running; it answers at http://127.0.0.1:3000\ncurl x\n# now stop it: Ctrl+C"
      )
    ).toEqual([
      { kind: "run", text: "cd shop" },
      { kind: "leave", text: "node a.mjs \\\n  --x", url: "http://127.0.0.1:3000" },
      { kind: "run", text: "curl x" },
      { kind: "stop" }
    ])
    expect(stepsOf("# only a remark")).toEqual([])
  })
})

describe("a newcomer's path", () => {
  it("takes as many commands as the guide states, for each language", () => {
    const page = readFileSync(join(root, "examples", "guides", "languages.md"), "utf8")
    const counted = commandsBySection(page)
    const paths = pathsOf(page)
    expect(paths.map(({ section }) => section)).toEqual(["curl-and-openssl", "python", "javascript-frameworks"])
    expect(paths.map(({ section }) => counted.get(section))).toEqual(paths.map(({ stated }) => stated))
  })
})
