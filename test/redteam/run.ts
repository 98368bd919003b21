// `npm run redteam -- --url http://…` is `tollkeeper redteam`. Without `--url` one run covers ours, the official
// facilitator class on the same ledger, a seller of the official packages, a seller of ours, and our tool server, and
// `--html FILE` and `--json FILE` write the score cards. The exit code is 0 only if every case held at ours. Ends with
// `N held, N failed, N skipped` of ours. `npm run redteam -- outgoing` plays the hostile neighborhood (`outgoing.ts`)
// in a network namespace, on Node and on Deno.
import { spawnSync } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { startSeller } from "../../examples/seller-http.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { lineOf, pageOf, totalOf } from "../../runtime/redteam/card.ts"
import { type Card, playCases } from "../../runtime/redteam/run.ts"
import type { Kind } from "../../runtime/redteam/target.ts"
import { startToolServer } from "../conformance/mcpCases.ts"
import { installSet } from "../conformance/officialSet.ts"
import { type Program, startProgram } from "../conformance/programs.ts"
import { root, startWorld, type World } from "../conformance/world.ts"
import { denoProgram } from "../support/denoProgram.ts"

interface Subject {
  readonly url: string
  readonly kind: Kind
  readonly isOurs: boolean
  readonly stop: () => Promise<void>
}

const urlOf = async (program: Program): Promise<string> =>
  String((await program.next(({ url }) => typeof url === "string")).url)

const network = "stellar:testnet"

/** A program of the official packages, `peer.mjs` or `seller.mjs`. */
const startOfficial = async (folder: string, file: string, settings: object): Promise<Program> =>
  startProgram(
    process.execPath,
    ["--import", join(root, "test/official/horizon.mjs"), join(folder, file), JSON.stringify(settings)],
    { cwd: folder, env: { LOCAL_HORIZON_PORT: "1" } }
  )

/** Each subject starts when its turn comes. */
const subjects = (world: World): ReadonlyArray<() => Promise<Subject>> => [
  async () => ({ url: world.facilitator, kind: "facilitator", isOurs: true, stop: async () => {} }),
  async () => {
    await installSet("a", console.log)
    const folder = join(root, "test/official/a")
    const accounts = await Promise.all([0, 1, 2].map(() => world.account(0)))
    const secrets = accounts.map((account) => account.secret())
    const program = await startOfficial(folder, "peer.mjs", { rpc: world.ledger, secrets, network })
    return { url: await urlOf(program), kind: "facilitator", isOurs: false, stop: program.stop }
  },
  async () => {
    await installSet("c", console.log)
    const folder = join(root, "test/official/c")
    const payTo = (await world.account(0)).publicKey()
    const program = await startOfficial(folder, "seller.mjs", { facilitator: world.facilitator, payTo, network })
    return { url: `${await urlOf(program)}/plain`, kind: "seller", isOurs: false, stop: program.stop }
  },
  async () => {
    const payTo = (await world.account(0)).publicKey()
    const sale = { payTo, asset: testnetUsdc, amount: "10000" }
    const { close, url } = await startSeller({ ...sale, facilitator: world.facilitator })
    return { url: `${url}/weather`, kind: "seller", isOurs: true, stop: close }
  },
  async () => {
    const { stop, url } = await startToolServer(world, { name: "Node", command: process.execPath, args: [] })
    return { url, kind: "mcp", isOurs: true, stop }
  }
]

const compare = async ({ html, json }: { html?: string | undefined; json?: string | undefined }): Promise<number> => {
  const world = await startWorld({})
  const cards: Array<Card & { readonly isOurs: boolean }> = []
  try {
    for (const start of subjects(world)) {
      const { isOurs, kind, stop, url } = await start()
      console.log(`\n${url} (${kind})`)
      const onScore = (score: Card["scores"][number]) =>
        score.result === "held" ? undefined : console.log(lineOf(score))
      const card = await playCases({ url, kind, ledger: world.ledger }, { onScore }).finally(stop)
      cards.push({ ...card, isOurs })
    }
  } finally {
    await world.stop()
  }
  if (html !== undefined) await writeFile(html, pageOf(cards))
  if (json !== undefined) await writeFile(json, JSON.stringify({ targets: cards }, null, 1))
  for (const card of cards) console.log(totalOf(card))
  const ours = cards.filter(({ isOurs }) => isOurs)
  const sum = (key: "held" | "failed" | "skipped") => ours.reduce((total, card) => total + card[key], 0)
  console.log(`${sum("held")} held, ${sum("failed")} failed, ${sum("skipped")} skipped`)
  return sum("failed") === 0 && sum("held") > 0 ? 0 : 1
}

/** Starts the hostile neighborhood in separate network namespaces: on this runtime, and on Deno if it is installed. */
const playOutgoing = (): number => {
  const inside = ["-rn", "--kill-child"]
  if (spawnSync("unshare", [...inside, "ip", "link"]).status !== 0) {
    console.log("outgoing: skipped, since this machine allows no network namespaces (unshare -rn)")
    return 0
  }
  const hasDeno = spawnSync(denoProgram, ["--version"]).status === 0
  if (!hasDeno) console.log("outgoing: skipped on Deno, which is not installed")
  const runtimes = [
    [process.execPath, "--disable-warning=ExperimentalWarning"],
    ...(hasDeno ? [[denoProgram, "run", "-A"]] : [])
  ]
  const failed = runtimes.filter((runtime) => {
    const program = [...inside, ...runtime, join(root, "test/redteam/outgoing.ts")]
    return spawnSync("unshare", program, { stdio: "inherit" }).status !== 0
  })
  return failed.length === 0 ? 0 : 1
}

const words = process.argv.slice(2)
if (words[0] === "outgoing") process.exitCode = playOutgoing()
else if (words.includes("--url")) {
  const program = join(root, "runtime", "cli.ts")
  const { status } = spawnSync(process.execPath, [program, "redteam", ...words], { stdio: "inherit" })
  process.exitCode = status ?? 1
} else {
  const { values } = parseArgs({ args: words, options: { html: { type: "string" }, json: { type: "string" } } })
  process.exitCode = await compare(values)
}
