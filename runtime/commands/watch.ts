// `tollkeeper watch --channels FILE`: a watchtower for sellers' channels (`examples/watchtower.ts`). It reads the
// file that a seller exported, and again when it changes, and answers each started withdrawal with the seller's claim.
// WATCH_SECRET is the key of a small account that pays the fees and signs the proofs. Runs until it is stopped.
import { Data, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { appendFile, readFile, stat } from "node:fs/promises"
import process from "node:process"
import { visibleText } from "../visibleText.ts"
import { answer, jsonFlag } from "./CommandTarget.ts"

class WatchFailed extends Data.TaggedError("WatchFailed")<{ readonly message: string }> {}

const optional = (name: string, words: string) =>
  Flag.String(name).pipe(Flag.withDescription(words), Flag.optional, Flag.map(Option.getOrUndefined))
const amount = (name: string, words: string) =>
  Flag.Int(name).pipe(
    Flag.withDescription(words),
    Flag.optional,
    Flag.map((value) => Option.getOrUndefined(Option.map(value, BigInt)))
  )

const attempted = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => new WatchFailed({ message: String((cause as Error).message) }) })

/** Checks the signatures of the proofs in a file. */
const verify = Effect.fnUntraced(function* (path: string, json: boolean) {
  const { isProof } = yield* Effect.promise(() => import("../../examples/watchtower.ts"))
  const lines = (yield* attempted(() => readFile(path, "utf8"))).split("\n").filter((line) => line !== "")
  const proofs = yield* attempted(async () => lines.map((line) => JSON.parse(line)))
  const checked = proofs.map((proof) => ({ isValid: isProof(proof), ...proof }))
  const rows = checked.map(({ channelId, claimedAfter, claimedBefore, isValid, transaction, watcher }) =>
    [isValid ? "signed" : "NOT SIGNED", channelId, `${claimedBefore} to ${claimedAfter}`, transaction, watcher].join(
      "  "
    )
  )
  yield* answer(json, { proofs: checked }, rows)
  if (checked.some(({ isValid }) => !isValid)) return yield* new WatchFailed({ message: "a proof is not signed" })
})

interface Watching {
  readonly channels: string
  readonly rpc: string
  readonly proofs: string
  readonly every: number
  readonly once: boolean
  readonly maxFee: bigint | undefined
  readonly maxSpend: bigint | undefined
  readonly minGain: bigint | undefined
}

const watchChannels = Effect.fnUntraced(function* (watching: Watching, secret: string) {
  const { channels, every, maxFee, maxSpend, minGain, once, proofs, rpc } = watching
  const { Watchtower } = yield* Effect.promise(() => import("../../examples/watchtower.ts"))
  const report = (line: string) => void process.stderr.write(visibleText(`${new Date().toISOString()} ${line}\n`))
  const tower = new Watchtower({
    ...{ secret, rpcUrls: rpc.split(","), report },
    ...(maxFee === undefined ? {} : { feeMax: maxFee }),
    ...(maxSpend === undefined ? {} : { spendMax: maxSpend }),
    ...(minGain === undefined ? {} : { gainMin: minGain }),
    keep: (proof) => appendFile(proofs, `${JSON.stringify(proof)}\n`)
  })
  let readAt = 0
  const reload = async () => {
    const { mtimeMs } = await stat(channels)
    if (mtimeMs === readAt) return
    tower.load(await readFile(channels, "utf8"))
    readAt = mtimeMs
  }
  const turn = Effect.andThen(
    attempted(reload),
    attempted(() => tower.turn())
  )
  if (once) return yield* Effect.asVoid(turn)
  while (true) {
    yield* Effect.catch(turn, ({ message }) => Effect.sync(() => report(message)))
    yield* Effect.sleep(every * 1_000)
  }
})

export const watch = Command.make(
  "watch",
  {
    channels: optional("channels", "File that a seller exported; read again when it changes"),
    rpc: optional("rpc", "Ledger RPC, or several with commas: a withdrawal that one of them shows is answered"),
    proofs: Flag.String("proofs").pipe(
      Flag.withDescription("File to which proofs are appended; default watch-proofs.jsonl"),
      Flag.withDefault("watch-proofs.jsonl")
    ),
    every: Flag.Int("every").pipe(
      Flag.withDescription("Seconds between two readings of the ledger; default 60"),
      Flag.withDefault(60)
    ),
    once: Flag.Boolean("once").pipe(
      Flag.withDescription("Read the ledger once and exit; default false"),
      Flag.withDefault(false)
    ),
    maxFee: amount("max-fee", "Maximum fee of one claim, stroops; default 1000000"),
    maxSpend: amount("max-spend", "Maximum fees in 24 hours, stroops; default 50000000"),
    minGain: amount("min-gain", "Minimum gain of a claim, atomic units; default 1"),
    verify: optional("verify", "Check the signatures of the proofs in this file, and exit"),
    json: jsonFlag
  },
  Effect.fn(function* ({ channels, json, rpc, verify: path, ...others }) {
    if (path !== undefined) return yield* verify(path, json)
    const secret = process.env["WATCH_SECRET"]
    if (channels === undefined || rpc === undefined || secret === undefined)
      return yield* new WatchFailed({ message: "--channels, --rpc and the variable WATCH_SECRET are required" })
    // A third of the shortest delay of a withdrawal.
    if (others.every < 1 || others.every > 300)
      return yield* new WatchFailed({ message: "--every: between 1 and 300 seconds" })
    yield* watchChannels({ channels, rpc, ...others }, secret)
  })
).pipe(Command.withDescription("Answer payers' withdrawals from sellers' exported channels, as a watchtower"))
