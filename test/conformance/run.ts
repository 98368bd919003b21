// `npm run conformance`: the official packages, and a client and seller of the neutral dialect, against a facilitator
// that is started as a user starts it. Arguments: `--set a|b|c` for some sets only, names of parts (`official`,
// `resend`, `neutral`, `attacks`, `malformed`, `catalog`, `upto`, `batch`, `mcp`, `agents`, `receipts`, `reach`,
// `restart`) for some parts only, and `--url`, `--ledger`, `--ledger-https`, `--certificate` for a facilitator that
// runs already (which lists no token that lies). Prints one line a case and ends with `N passed, N failed`; the exit
// code is 0 only when every case held.
import { parseArgs } from "node:util"
import { batchAdversaries, batchOnTime } from "./batchAdversaries.ts"
import { batchCases } from "./batchCases.ts"
import { batchArchived, batchAudited } from "./batchEndings.ts"
import { batchStoreCases } from "./batchStoreCases.ts"
import { batchOf } from "./batchWorld.ts"
import { agentCases } from "./agentCases.ts"
import { choiceCases } from "./choiceCases.ts"
import { catalogCases } from "./catalogCases.ts"
import { conformanceParts } from "./conformanceParts.ts"
import { installMcp, mcpCases, runtimes, sayLeftOut } from "./mcpCases.ts"
import { leftOut } from "./mcpSuite.ts"
import { neutralCases } from "./neutralCases.ts"
import { officialCases } from "./officialCases.ts"
import { installSet, type SetName } from "./officialSet.ts"
import { receiptCases } from "./receiptCases.ts"
import { makeReport } from "./report.ts"
import { reachCases } from "./reachCases.ts"
import { redteamPart } from "../redteam/redteamPart.ts"
import { resendCases } from "./resendCases.ts"
import { restartCases } from "./restartCases.ts"
import { sellerCases } from "./sellerCases.ts"
import { profileCases } from "./profileCases.ts"
import { uptoCases } from "./uptoCases.ts"
import { uptoOfficial } from "./uptoOfficial.ts"
import { assetsWithLyingToken, uptoProfiles } from "./uptoWorld.ts"
import { startWorld, type World } from "./world.ts"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    set: { type: "string", multiple: true },
    url: { type: "string" },
    ledger: { type: "string" },
    "ledger-https": { type: "string" },
    certificate: { type: "string" }
  }
})
const everything: ReadonlyArray<string> = conformanceParts
const parts = positionals.length > 0 ? positionals : values.set === undefined ? everything : ["official"]
const unknown = parts.find((part) => !everything.includes(part))
if (unknown !== undefined) throw new Error(`no part ${unknown}; there are ${everything.join(", ")}`)
const sets = (values.set ?? ["a", "b", "c"]) as ReadonlyArray<SetName>
const titles = {
  a: "set A: official packages 2.9.0",
  b: "set B: official packages 2.21.0",
  c: "set C: official packages 2.27.0"
}

/** An agent chooses among all listings, so it has a facilitator without listings of the other parts. */
const inMarketOfItsOwn = async (work: (world: World) => Promise<void>): Promise<void> => {
  if (values.url !== undefined) return work(world)
  const own = await startWorld({})
  return work(own).finally(own.stop)
}

/** The store's authorizers need a secret. The cases kill the facilitator and set its ledger's clock ahead. */
const withBatch = async (work: (world: World) => Promise<void>): Promise<void> => {
  if (values.url !== undefined) return work(world)
  const own = await startWorld({
    set: [
      assetsWithLyingToken,
      "batch_store.allow_keyless=true",
      "batch_store.poll_seconds=1",
      "batch_store.watch_seconds=1"
    ],
    environment: { BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of conformance" }
  })
  return work(own).finally(own.stop)
}

const say = (line: string) => console.log(line)
const report = makeReport(say)
const world = await startWorld({
  url: values.url,
  ledger: values.ledger,
  ledgerHttps: values["ledger-https"],
  certificate: values.certificate,
  isFirstStart: true,
  set: [assetsWithLyingToken, uptoProfiles]
})
say(
  `facilitator ${world.facilitator}${world.readyAfterMs === undefined ? "" : `, ready after ${world.readyAfterMs} ms`}`
)
try {
  for (const name of parts.includes("official") ? sets : []) {
    await report.part(titles[name], (part) => officialCases(name, world, part, say))
  }
  if (parts.includes("resend")) await resendCases(sets, world, report.part, say)
  if (parts.includes("neutral")) await report.part("neutral dialect", (part) => neutralCases(world, part))
  if (parts.includes("attacks")) {
    await report.part("crafted payments", (part) => redteamPart(world, part, ({ pays }) => pays === true))
  }
  if (parts.includes("malformed"))
    await report.part("malformed requests", (part) => redteamPart(world, part, ({ pays }) => pays !== true))
  if (parts.includes("catalog"))
    await report.part("catalog: every official declaration", (part) => catalogCases(world, part, say))
  if (parts.includes("upto")) {
    await report.part("upto: a signed maximum", (part) => uptoCases(world, part))
    await report.part("upto: profiles of the drafts", (part) => profileCases(world, part))
    await report.part("upto: official packages 2.27.0", (part) => uptoOfficial(world, part, say))
  }
  if (parts.includes("batch")) {
    await installSet("c", say)
    // A facilitator of its own, because the audit below reports the token that takes a fee.
    await withBatch((own) =>
      report.part("batch: an adversary on time", async (part) =>
        batchOnTime({ world: own, part, batch: await batchOf(own) })
      )
    )
    await withBatch(async (own) => {
      await report.part("batch: one deposit, many vouchers", (part) => batchCases(own, part))
      await report.part("batch: sellers without a store", (part) => batchStoreCases(own, part))
      await report.part("batch: an adversary", async (part) =>
        batchAdversaries({ world: own, part, batch: await batchOf(own) })
      )
      await report.part("batch: the audit", (part) => batchAudited(own, part))
      await report.part("batch: months later", (part) => batchArchived(own, part))
    })
  }
  if (parts.includes("mcp")) {
    await installMcp(say)
    sayLeftOut(say, leftOut)
    for (const runtime of runtimes)
      await report.part(`mcp: official suite and inspector, tools on ${runtime.name}`, (part) =>
        mcpCases(world, runtime, part)
      )
  }
  if (parts.includes("agents")) {
    await report.part("agents: HTTP and MCP paid", (part) => inMarketOfItsOwn((own) => agentCases(own, part)))
    await report.part("agents: the right one of 60 listings", (part) =>
      inMarketOfItsOwn((own) => choiceCases(own, part))
    )
    await report.part("agents: receipts in every shape, sellers of both eras", (part) => sellerCases(world, part))
  }
  if (parts.includes("receipts")) await receiptCases(sets, report.part, say)
  if (parts.includes("reach"))
    await report.part("reach: any language, any framework", (part) => reachCases(world, part, say))
  if (parts.includes("restart") && world.crash !== undefined) {
    await report.part("start and restart", (part) => restartCases(world, part))
  }
} finally {
  await world.stop()
}
process.exitCode = report.close() ? 0 : 1
