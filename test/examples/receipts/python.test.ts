// Verifiers in Python: the published one, and one whose author read the specification and the guide, and no code of
// the project. Both accept genuine receipts and refuse every forgery, as the JavaScript verifier does. The tests are
// skipped with a message without Python.
import { Account, Keypair, Memo, Networks, Operation, TransactionBuilder } from "@stellar/stellar-sdk"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
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
        return verify(case["answer"], case["did"], max_age=case.get("maxAge"))["amount"]
    except Refused as error:
        return f"refused: {error}"
print(json.dumps([said(case) for case in json.load(sys.stdin)]))
`
const python = ["/usr/bin/python3", "python3"].find(
  (one) => spawnSync(one, ["-c", "import sys; assert sys.version_info >= (3, 9)"]).status === 0
)
const independent = fileURLToPath(new URL("independent.py", import.meta.url))
const verifiers = [
  { name: "the published verifier", args: ["-c", asked, folder] },
  { name: "an independent verifier", args: [independent] }
]
if (python === undefined) console.log("left out: there is no Python here")

/** What a verifier answers to each case, in order. */
const answersOf = (args: ReadonlyArray<string>, cases: ReadonlyArray<unknown>) => {
  const input = JSON.stringify(cases)
  const { status, stderr, stdout } = spawnSync(python!, args, { input, encoding: "utf8" })
  expect([status, stderr]).toEqual([0, ""])
  return JSON.parse(stdout) as ReadonlyArray<string>
}

it.skipIf(python === undefined).each(verifiers)(
  "$name accepts the genuine receipts and refuses every forgery",
  ({ args }) => {
    const { forgeries: made, passing } = makeForgeries()
    const old = passing.find(({ kind }) => kind.endsWith("of that day"))!
    const cases = [...passing, ...made, { ...old, kind: "an old checkpoint", maxAge: 86_400 }]
    const said = answersOf(args, cases)
    const wrong = cases.flatMap(({ kind }, at) =>
      (at < passing.length ? said[at] === "10000" : said[at]!.startsWith("refused: ")) ? [] : [`${kind}: ${said[at]}`]
    )
    expect(wrong).toEqual([])
    // A refusal names the defect of the receipt; none results from an error in the verifier.
    expect(said.filter((one) => /object|attribute|NoneType|uninitialized| line \d/.test(one))).toEqual([])
  },
  60_000
)

it.skipIf(python === undefined)("the independent verifier checks memo and account of the anchor", () => {
  const { passing } = makeForgeries()
  const { answer, did } = passing[0]! as any
  const sponsor = Keypair.random().publicKey()
  const { checkpoint } = answer.outcomes[0].proof
  const body = checkpoint.slice(0, checkpoint.indexOf("\n\n") + 1)
  const caseOf = (text: string, account = sponsor, transaction = {}) => {
    const memo = Memo.hash(createHash("sha256").update(text).digest())
    const built = new TransactionBuilder(new Account(account, "7"), {
      fee: "100",
      networkPassphrase: Networks.TESTNET,
      memo
    })
      .addOperation(Operation.bumpSequence({ bumpTo: "0" }))
      .setTimebounds(0, 0)
      .setLedgerbounds(0, 5_000)
      .build()
    const anchor = { account: sponsor, transaction: Buffer.from(built.hash()).toString("hex"), ledger: 7, checkpoint }
    const service = [{ id: `${did.id}#log`, anchor }]
    return {
      answer,
      did: { ...did, service },
      transaction: { status: "SUCCESS", envelopeXdr: built.toXDR(), ...transaction }
    }
  }
  const said = answersOf(
    [independent],
    [
      caseOf(body),
      caseOf(`${body}more\n`),
      caseOf(body, Keypair.random().publicKey()),
      caseOf(body, sponsor, { status: "NOT_FOUND" })
    ]
  )
  expect(said).toEqual([
    "10000",
    "refused: the anchor's memo is of another checkpoint",
    "refused: the anchor is of another account",
    "refused: the anchor's transaction did not succeed"
  ])
})
