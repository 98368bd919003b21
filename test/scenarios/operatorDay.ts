// An operator's questions and acts, each by command and by the page's route, through a proxy in front of both replicas:
// service levels, acts, limits, books, messages, find, archives, alerts' counters, keys. A row is one question.
import { writeFileSync } from "node:fs"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { Stage } from "./Stage.ts"
import type { World } from "./World.ts"

/** A proxy that sends each request to the next replica. */
const startProxy = async (world: World): Promise<string> => {
  let next = 0
  const server = createServer((from, to) => {
    const { hostname, port } = new URL(world.replicas[next++ % world.replicas.length]!.url)
    const { headers, method, url: path } = from
    const passed = request({ hostname, port, method, path, headers }, (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(to)
    })
    passed.on("error", () => to.writeHead(502).end())
    from.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  world.onClose(async () => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

interface Asked {
  /** The answer of a command over replica one. */
  readonly command: (...words: ReadonlyArray<string>) => Promise<string>
  /** The sentence of a command that refuses. */
  readonly refused: (...words: ReadonlyArray<string>) => Promise<string>
  readonly get: (path: string, accept?: string) => Promise<string>
  readonly move: (body: object) => Promise<string>
  readonly world: World
}

const askedOf = (world: World, proxy: string): Asked => {
  const headers = { authorization: `Bearer ${world.operatorKey}` }
  const textOf = async (path: string, init: RequestInit) => {
    const answer = await fetch(`${proxy}${path}`, { ...init, signal: AbortSignal.timeout(20_000) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${path} answers ${answer.status}: ${text.slice(0, 200)}`)
    return text
  }
  return {
    world,
    command: (...words) => world.operatorText([...words, "--state", world.state("one")]),
    refused: (...words) =>
      world.operatorText(words).then(
        () => "",
        ({ stderr, stdout }) => `${stdout}${stderr}`
      ),
    get: (path, accept = "application/json") => textOf(path, { headers: { ...headers, accept } }),
    move: (body) =>
      textOf("/dashboard/v1/moves", {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(body)
      })
  }
}

const limitOn = async ({ world }: Asked, name: string): Promise<ReadonlyArray<string>> =>
  Promise.all(
    world.replicas.map(async (replica) => {
      const { limits } = await world.ask(replica, "/dashboard/v1/standing", world.operatorKey)
      return limits.find((one: any) => one.name === name && one.principal === null).value
    })
  )

const within = async (seconds: number, holds: () => Promise<boolean>): Promise<boolean> => {
  for (const end = performance.now() + seconds * 1_000; performance.now() < end; await sleep(200))
    if (await holds()) return true
  return false
}

/** Changes a limit by command and by route; every replica follows each within five seconds. */
const changeLimits = async (of: Asked): Promise<boolean> => {
  const name = "verify_per_second"
  const changes = [
    [() => of.command("limits", "set", name, "900", "--reason", "by command"), "900"],
    [() => of.move({ move: "limit", name, value: "901", note: "by page" }), "901"]
  ] as const
  for (const [change, value] of changes) {
    await change()
    if (!(await within(5, async () => (await limitOn(of, name)).every((one) => one === value)))) return false
  }
  return true
}

const lastMonth = async (of: Asked): Promise<any> => JSON.parse(await of.get("/dashboard/v1/books")).items[0]

/** The questions; each answers whether what it reads is true. */
const rows: ReadonlyArray<readonly [question: string, holds: (of: Asked) => Promise<boolean>]> = [
  [
    "levels alike on status and operation",
    async ({ get }) => {
      const [status, standing] = [JSON.parse(await get("/status")), JSON.parse(await get("/dashboard/v1/standing"))]
      const page = await get("/status", "text/html")
      return status.checks_met === status.checks && page.includes("Availability") && standing.pace.p95_ms > 0
    }
  ],
  ["limits by command and page", changeLimits],
  [
    "acts with reason, before and after",
    async ({ command, get }) => {
      const listed = await command("acts", "--limit", "20")
      const saved = await get("/dashboard/v1/moves", "text/csv")
      return ["by command", "by page"].every((reason) => listed.includes(reason) && saved.includes(reason))
    }
  ],
  [
    "books and statement",
    async (of) => {
      const { key, month } = await lastMonth(of)
      const statement = await of.get(`/dashboard/v1/statement?${new URLSearchParams({ month, key, format: "csv" })}`)
      const budget = await of.command("budget")
      return statement.split("\n").length > 2 && /closed|ledger/i.test(statement) && budget.length > 2
    }
  ],
  [
    "a password on the command line is refused",
    async ({ refused }) => /process list/.test(await refused("move", "--to", "postgres://ada:secret@localhost/one"))
  ],
  ["the wrong folder is named", async ({ refused }) => /nowhere/.test(await refused("acts", "--state", "nowhere"))],
  [
    "find and reasons",
    async ({ get, world }) => {
      const reason = "settle_ledger_sponsor_budget_exceeded"
      const explained = await world.operatorText(["reasons", reason])
      const found = await get(`/analytics/v1/find?q=${reason}`)
      return explained.includes(reason) && found.includes(reason) && (await get("/reasons")).includes(reason)
    }
  ],
  [
    "a damaged archive is named",
    async ({ refused, world }) => {
      const file = join(world.folder, "bad.tar")
      writeFileSync(file, "no archive")
      return (await refused("backup", "verify", file)).includes("bad.tar")
    }
  ],
  [
    "counters begin at 0",
    async ({ get }) => /^tollkeeper_[a-z_]+_total(\{[^}]*\})? 0$/m.test(await get("/metrics", "text/plain"))
  ],
  [
    "keys and channels counted alike",
    async ({ command, get }) => {
      const { channels } = JSON.parse(await get("/dashboard/v1/standing"))
      return (await command("keys", "list")).length > 2 && channels.length > 0
    }
  ]
]

export const operatorDay = async ({ world }: Stage): Promise<string> => {
  const of = askedOf(world, await startProxy(world))
  await world.traffic.more(4)
  for (const [question, holds] of rows) if (!(await holds(of))) throw new Error(`an operator's question: ${question}`)
  await of.command("limits", "set", "verify_per_second", "default", "--reason", "the end of the scene")
  return `${rows.length} questions by command and page through a proxy of ${world.replicas.length} replicas`
}
