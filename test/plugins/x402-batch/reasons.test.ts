// The reasons as their document has them.
import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { refusals } from "../../../plugins/x402-batch/refusals.ts"

it("each reason is in the document's table, and each word of the table is a reason", () => {
  const readme = readFileSync("plugins/x402-batch/README.md", "utf8")
  const [, section = ""] = readme.split("\n## Reasons\n")
  const table = section
    .split("\n## ")[0]!
    .split("\n")
    .filter((line) => line.startsWith("| `"))
  const documented = table.flatMap((line) => [...line.split("|")[1]!.matchAll(/`(\w+)`/g)].map(([, word]) => word!))
  const words = refusals.map(({ reason }) => reason.replace("invalid_batch_settlement_ledger_", ""))
  expect(documented.sort()).toEqual([...words].sort())
})
