// The Python verifier, a second implementation that needs no package: it accepts genuine receipts and refuses every
// forgery, as the JavaScript verifier does. Without a Python the test is skipped, with a message.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { makeForgeries } from "../../support/receiptForgeries.ts"

const folder = fileURLToPath(new URL("../../../examples/receipts", import.meta.url))
const asked = `
import json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from verify import Refused, verify
def said(case):
    try:
        return verify(case["answer"], case["did"])["amount"]
    except Refused as error:
        return f"refused: {error}"
print(json.dumps([said(case) for case in json.load(sys.stdin)]))
`
const python = ["/usr/bin/python3", "python3"].find(
  (one) => spawnSync(one, ["-c", "import sys; assert sys.version_info >= (3, 9)"]).status === 0
)
if (python === undefined) console.log("left out: there is no python3 here")

it.skipIf(python === undefined)("Python holds what is genuine and refuses every forgery", () => {
  const { forgeries, passing } = makeForgeries()
  const cases = [...passing, ...forgeries]
  const { status, stderr, stdout } = spawnSync(python!, ["-c", asked, folder], {
    input: JSON.stringify(cases),
    encoding: "utf8"
  })
  expect(stderr).toBe("")
  expect(status).toBe(0)
  const said: ReadonlyArray<string> = JSON.parse(stdout)
  const wrong = cases.flatMap(({ kind }, at) =>
    (at < passing.length ? said[at] === "10000" : said[at]!.startsWith("refused: ")) ? [] : [`${kind}: ${said[at]}`]
  )
  expect(wrong).toEqual([])
  // A refusal names the defect of the receipt; none results from an error in the verifier.
  expect(said.filter((one) => /object|attribute|NoneType/.test(one))).toEqual([])
})
