// `npm run bench -- closes`: how late the embedded ledger closes during long simulations. `tollkeeper ledger` runs as a
// separate process and closes every second, first undisturbed, then while eight clients simulate uploads of 90 KB and
// six simulate contracts that burn memory until they are stopped, each again after its answer. The lateness of a close
// is what a client sees beyond a second after the previous one, so other work of the machine counts too. Two bars, and
// the status is 0 only if both hold: the additional lateness due to the simulations, and the processor time of one
// simulation, because at most one runs before a due close. A busy machine only blurs the first.
import { Account, Contract, Keypair, Networks, Operation, TransactionBuilder, type xdr } from "@stellar/stellar-sdk"
import process from "node:process"
import { startProgram } from "../conformance/programs.ts"
import { contract, leb, signed, VOID_BODY } from "../plugins/ledger-local/engine/wasm/assemble.ts"
import { deployContract } from "../support/deployContract.ts"
import { freePort } from "../support/freePort.ts"
import { LedgerRpcError, rpcCall } from "../../runtime/redteam/rpcCall.ts"
import { atMost, barLine } from "./rig/bars.ts"
import { processorMillis } from "./rig/processes.ts"
import { root } from "./rig/program.ts"

const closeMillis = 1_000
const closesAlone = 15
const closesBeside = 40
/** Maximum additional lateness of nineteen in twenty closes. */
const addedMillisMax = 300
/** Number of simulations of each kind that are measured; the fastest counts. */
const measured = 4
const uploadClients = 8
const burningClients = 6
const pollMillis = 10
const uploadBytes = 90_000

const i32 = (value: number): Array<number> => [0x41, ...signed(BigInt(value))]
const pages = 40
/** Writes to all of its memory, 2.5 MB, repeatedly, until the limit of instructions or of time ends it. */
const burning = contract({
  body: [0x03, 0x40, ...i32(0), ...i32(7), ...i32(pages * 65_536), 0xfc, 0x0b, 0, 0x0c, 0, 0x0b, ...VOID_BODY],
  memory: [0, ...leb(pages)]
})
/** A contract of `uploadBytes` bytes: constants that are dropped. */
const large = (number: number): Uint8Array =>
  contract({
    body: [0x42, number, 0x1a, ...Array.from({ length: uploadBytes / 3 }, () => [0x42, 2, 0x1a]).flat(), ...VOID_BODY]
  })

const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))
const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN

/** Lateness of each of `closes` closes, milliseconds. */
const latenessOf = async (url: string, closes: number): Promise<ReadonlyArray<number>> => {
  const rpc = rpcCall(url)
  const seenAt: Array<number> = []
  const late: Array<number> = []
  let known = (await rpc("getLatestLedger")).sequence
  while (late.length < closes) {
    const { sequence } = await rpc("getLatestLedger")
    const now = performance.now()
    if (sequence > known) {
      const before = seenAt.at(-1)
      // Ledgers that were closed between two polls share the time between these.
      if (before !== undefined)
        for (let n = known; n < sequence; n++) late.push((now - before) / (sequence - known) - closeMillis)
      seenAt.push(now)
      known = sequence
    }
    await pause(pollMillis)
  }
  return late
}

const envelopeOf = (operation: xdr.Operation): string =>
  new TransactionBuilder(new Account(Keypair.random().publicKey(), "1"), {
    fee: "100",
    networkPassphrase: Networks.TESTNET
  })
    .addOperation(operation)
    .setTimeout(0)
    .build()
    .toEnvelope()
    .toXdr("base64")

/** The clients' simulations, one per envelope. */
const envelopes = async (url: string): Promise<ReadonlyArray<string>> => {
  const burners: Array<string> = []
  const deployer = Keypair.random()
  for (let n = 0; n < burningClients; n++)
    burners.push(await deployContract(url, deployer, burning, Keypair.random().rawPublicKey()))
  return [
    ...Array.from({ length: uploadClients }, (_, n) =>
      envelopeOf(Operation.uploadContractWasm({ wasm: Buffer.from(large(n)) }))
    ),
    ...burners.map((address) => envelopeOf(new Contract(address).call("run")))
  ]
}

/** Processor time of the ledger for one simulation, milliseconds. */
const costOf = async (url: string, pid: number, transaction: string): Promise<number> => {
  let least = Infinity
  for (let n = 0; n < measured; n++) {
    const before = processorMillis(pid)
    await rpcCall(url)("simulateTransaction", { transaction })
    least = Math.min(least, processorMillis(pid) - before)
  }
  return least
}

export const bench = async (): Promise<boolean> => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const args = ["runtime/cli.ts", "ledger", "--port", String(port), "--close", `${closeMillis / 1_000}s`]
  const ledger = startProgram(process.execPath, args, { cwd: root })
  try {
    while ((await rpcCall(url)("getHealth").catch(() => undefined))?.status !== "healthy") await pause(100)
    const transactions = await envelopes(url)
    const alone = await latenessOf(url, closesAlone)
    const upload = await costOf(url, ledger.pid, transactions[0]!)
    const burner = await costOf(url, ledger.pid, transactions.at(-1)!)
    let isOver = false
    let [simulated, slowest] = [0, 0]
    const answers = new Map<string, number>()
    const client = async (transaction: string, number: number): Promise<void> => {
      const kind = number < uploadClients ? "upload" : "burning"
      while (!isOver) {
        const from = performance.now()
        const answer = await rpcCall(url)("simulateTransaction", { transaction }).catch((error) => error)
        if (answer instanceof Error && !(answer instanceof LedgerRpcError)) throw answer
        const text = answer.error === undefined ? "simulated" : String(answer.error).split("\n")[0]!.slice(0, 60)
        answers.set(`${kind}: ${text}`, (answers.get(`${kind}: ${text}`) ?? 0) + 1)
        slowest = Math.max(slowest, performance.now() - from)
        simulated += 1
      }
    }
    const clients = transactions.map(client)
    const beside = await latenessOf(url, closesBeside)
    isOver = true
    await Promise.all(clients)
    const line = (late: ReadonlyArray<number>): string =>
      `p50 ${quantile(late, 0.5).toFixed(0)} ms, p95 ${quantile(late, 0.95).toFixed(0)} ms, ` +
      `most ${Math.max(...late).toFixed(0)} ms of ${late.length} closes`
    for (const [what, times] of answers) console.log(`  ${what}: ${times}`)
    console.log(`  late alone: ${line(alone)}`)
    console.log(
      `  late beside ${simulated} simulations, the slowest answered in ${slowest.toFixed(0)} ms: ${line(beside)}`
    )
    const bars = [
      atMost("p95 added, ms", quantile(beside, 0.95) - quantile(alone, 0.95), addedMillisMax),
      atMost("processor time of an upload, ms", upload, addedMillisMax),
      atMost("of a contract that burns memory", burner, addedMillisMax)
    ]
    console.log(`bench closes: ${bars.map(barLine).join(", ")}`)
    return bars.every(({ holds }) => holds)
  } finally {
    await ledger.stop()
  }
}
