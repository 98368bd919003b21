// The red team against any facilitator: `node test/redteam/run.ts --url http://… [--ledger http://…] [--key …]`. The
// malformed requests need nothing else; the crafted payments and the replays need the address of a ledger with a
// friendbot, which the facilitator settles on. Arguments select parts (`malformed`, `attacks`, `replays`). Ends with `N
// passed, N failed`; the exit code is 0 only if all held.
import { parseArgs } from "node:util"
import { makeReport } from "../conformance/report.ts"
import { attackCases } from "./httpAttacks.ts"
import { malformedCases } from "./httpMalformed.ts"
import { replayCases } from "./httpReplays.ts"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { url: { type: "string" }, ledger: { type: "string" }, key: { type: "string" } }
})
if (values.url === undefined) {
  console.error("Name the facilitator: --url http://127.0.0.1:4022")
  process.exit(2)
}
const target = { url: values.url.replace(/\/+$/, ""), key: values.key }
const isAsked = (part: string) => positionals.length === 0 || positionals.includes(part)
const report = makeReport((line) => console.log(line))
const { ledger } = values
if (isAsked("attacks") && ledger !== undefined)
  await report.part("crafted payments", (part) => attackCases(target, ledger, part))
if (isAsked("replays") && ledger !== undefined)
  await report.part("one payment in every dress", (part) => replayCases(target, ledger, part))
if (isAsked("malformed")) await report.part("malformed requests", (part) => malformedCases(target, part))
process.exitCode = report.close() ? 0 : 1
