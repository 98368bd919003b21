// The official conformance suite of MCP, as far as it concerns a server that offers tools and paid content and none of
// the suite's own. Every scenario that a protocol revision runs is either required or excluded by name, with the
// reason; any other fails the run, so that a newer suite is reviewed. The suite's scenario names are frozen per
// revision (`requirements/` in the package).
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "./world.ts"

export type Revision = "2025-11-25" | "2026-07-28"

/** The applicable scenarios, complete except the checks in `leftOut`. */
export const applicable: Readonly<Record<Revision, ReadonlyArray<string>>> = {
  "2025-11-25": [
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection"
  ],
  "2026-07-28": [
    "server-stateless",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation"
  ]
}

const prompts = "the server has no prompts, and says so in its capabilities"
const resources = "asks for the suite's own resources; the server's are the content that its caller paid for"
const fixture = (tool: string) => `calls the suite's own tool ${tool}, which a server in use does not have`
const tasks = "tasks are an extension that the server does not offer, and says so in its capabilities"

/** Scenarios that do not apply, by name or prefix, and excluded checks of applicable ones, by id. */
export const leftOut: ReadonlyArray<readonly [string, string]> = [
  ["prompts-", prompts],
  ["resources-", resources],
  ["sep-2164-resource-not-found", resources],
  ["completion-complete", "nothing of the server's can be completed: it has neither prompts nor resource templates"],
  ["logging-set-level", "the server sends no log messages to clients, and says so in its capabilities"],
  ["tools-call-simple-text", fixture("test_simple_text")],
  ["tools-call-image", fixture("test_image_content")],
  ["tools-call-audio", fixture("test_audio_content")],
  ["tools-call-embedded-resource", fixture("test_embedded_resource")],
  ["tools-call-mixed-content", fixture("test_multiple_content_types")],
  ["tools-call-with-logging", fixture("test_tool_with_logging")],
  ["tools-call-error", fixture("test_error_handling")],
  ["tools-call-with-progress", fixture("test_tool_with_progress")],
  ["tools-call-sampling", fixture("test_sampling")],
  ["tools-call-elicitation", fixture("test_elicitation")],
  ["elicitation-", fixture("test_elicitation_…")],
  ["input-required-result-non-tool-request", prompts],
  ["input-required-result-", fixture("test_input_required_result_…")],
  ["json-schema-2020-12", fixture("json_schema_2020_12_tool")],
  ["server-sse-polling", fixture("test_reconnection")],
  ["http-custom-header-server-validation", "no tool of the server's asks for a header of its own"],
  ["tasks-", tasks],
  ["sep-2640-", "skills are an extension that the server does not offer, and says so in its capabilities"],
  ["sep-2575-server-rejects-undeclared-capability", fixture("test_missing_capability")],
  ["sep-2575-missing-capability-http-400", fixture("test_missing_capability")],
  ["sep-2575-http-server-no-independent-requests-on-stream", fixture("test_streaming_elicitation")],
  ["sep-2575-server-no-log-without-loglevel", fixture("test_logging_tool")],
  ["sep-2549-prompts-list-caching-hints", prompts],
  ["sep-2549-resources-", resources]
]

/** Why a scenario or a check does not apply; undefined if it does. */
export const whyNot = (name: string): string | undefined =>
  leftOut.find(([begin]) => name === begin || (begin.endsWith("-") && name.startsWith(begin)))?.[1]

export interface Check {
  readonly id: string
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO" | "SKIPPED"
  readonly errorMessage?: string
}

const tools = join(root, "test", "official", "mcp", "node_modules", "@modelcontextprotocol")

/** Runs a program of the official packages to its end; returns its output and its status. */
export const runOfficial = async (
  program: "conformance/dist/index.js" | "inspector/clients/launcher/build/index.js",
  args: ReadonlyArray<string>,
  home: string
): Promise<{ readonly status: number | null; readonly out: string; readonly err: string }> => {
  const child = spawn(process.execPath, [join(tools, program), ...args], {
    cwd: home,
    env: { ...process.env, HOME: home },
    stdio: ["ignore", "pipe", "pipe"]
  })
  const [out, err] = [[], []] as [Array<string>, Array<string>]
  child.stdout.setEncoding("utf8").on("data", (text) => out.push(text))
  child.stderr.setEncoding("utf8").on("data", (text) => err.push(text))
  const timer = setTimeout(() => child.kill("SIGKILL"), 120_000)
  const [status] = await once(child, "close")
  clearTimeout(timer)
  return { status, out: out.join(""), err: err.join("") }
}

/** Runs a complete revision; returns the checks of each scenario. */
export const runSuite = async (url: string, revision: Revision): Promise<ReadonlyMap<string, ReadonlyArray<Check>>> => {
  const home = await mkdtemp(join(tmpdir(), "tollkeeper-mcp-suite-"))
  try {
    const { err, out } = await runOfficial(
      "conformance/dist/index.js",
      ["server", "--url", url, "--requirements", revision, "-o", home],
      home
    )
    const scenarios = new Map<string, ReadonlyArray<Check>>()
    for (const name of await readdir(home)) {
      const scenario = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\dZ-]+$/.exec(name)?.[1]
      if (scenario !== undefined)
        scenarios.set(scenario, JSON.parse(await readFile(join(home, name, "checks.json"), "utf8")))
    }
    if (scenarios.size === 0) throw new Error(`the suite ran nothing\n${out.slice(-2_000)}\n${err.slice(-2_000)}`)
    return scenarios
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}
