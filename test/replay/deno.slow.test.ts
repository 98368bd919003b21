// One engine on two runtimes: the replay prints the same last lines on Deno as on Node. Needs the Deno of `test/tools`.
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { findStreams, sharedStreams } from "./streams.ts"

const root = new URL("../..", import.meta.url).pathname
const deno = `${root}test/tools/node_modules/@deno/linux-x64-glibc/deno`
const isReady = existsSync(deno) && findStreams(sharedStreams) !== undefined
if (!isReady)
  console.log("the replay on Deno is skipped: it needs Deno in test/tools and the streams in ../shared/data")

const report = (command: string, ...args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const { stderr, stdout } = spawnSync(command, [...args, "test/replay/replay.ts"], {
    cwd: root,
    encoding: "utf8",
    timeout: 240_000
  })
  const lines = stdout.split("\n").filter((line) => !line.startsWith("slow:"))
  if (lines.length < 3) throw new Error(stderr)
  return lines
}

describe.skipIf(!isReady)("the replay on Deno", () => {
  it("comes out line by line as on Node", () => {
    const onNode = report(process.execPath)
    expect(report(deno, "run", "--allow-all", "--node-modules-dir=manual")).toEqual(onNode)
    expect(onNode.at(-2)).toMatch(/^total: .* 0 different/)
  }, 480_000)
})
