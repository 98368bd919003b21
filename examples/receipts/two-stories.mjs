// The auditor's script for two stories. It compares two downloads of a log: either one continues the other, or the
// script prints the first different leaf. With an RPC and opened leaves (answers of `GET /receipts/HASH`) it also finds
// the leaf that the ledger confirms. Both checkpoints are signed, so the output is proof, except under a retired key of
// the log: a thief of that key can sign anything.
//   node two-stories.mjs LOG-A LOG-B did.json [RPC [ANSWER.json …]] [--witness KEY …]
// A log is a folder, or a URL such as HOST/log; a witness's KEY (NAME+HASH+KEY) is needed to accuse it.
import { checkAge } from "./check.mjs"
import { cosignedAt } from "./cosign.mjs"
import { openTiles, readKeys, readNewest } from "./tiles.mjs"
import { bytesOf, checkInclusion, hexOf, isInForce, leafHash, openCheckpoint, sha256 } from "./verify.mjs"

/** A log with tiles that match the root of its signed checkpoint. */
export const openStory = async (from, did) => {
  const { note, place } = await readNewest(from)
  const tree = await openCheckpoint(note, did, NaN)
  const tiles = openTiles(place, tree.size)
  if ((await tiles.root(0, tree.size)) !== tree.root)
    throw new Error(`the tiles of ${place} do not match its checkpoint`)
  return { place, note, tree, tiles }
}

/** Index of the first different one of `to` leaves. It descends into subtrees with different roots. */
const descend = async (a, b, from, to) => {
  if (to - from === 1) return from
  const middle = from + 2 ** ((to - from - 1).toString(2).length - 1)
  const [left, right] = await Promise.all([a.tiles.root(from, middle), b.tiles.root(from, middle)])
  return left === right ? descend(a, b, middle, to) : descend(a, b, from, middle)
}

/** A leaf of a story: its hash, proven to be in the checkpoint's tree, and the public part of its entry. */
const leafOf = async ({ tiles, tree }, index) => {
  const entry = await tiles.entry(index)
  const hash = await leafHash(entry)
  await checkInclusion(tree, index, hash, await tiles.inclusion(index))
  const rest = entry.subarray(1)
  return entry[0] === 1
    ? { hash, commitment: hexOf(rest), says: "an outcome" }
    : { hash, commitment: undefined, says: new TextDecoder().decode(rest) }
}

/** The first different leaf, as both stories have it; undefined if one story continues the other. */
export const compareStories = async (a, b) => {
  const [one, other] = [a.tree.origin, b.tree.origin]
  if (one !== other) throw new Error(`${one} and ${other} are two epochs: compare copies of one, such as HOST/log/1`)
  const common = Math.min(a.tree.size, b.tree.size)
  if ((await a.tiles.root(0, common)) === (await b.tiles.root(0, common))) return undefined
  const index = await descend(a, b, 0, common)
  return { index, a: await leafOf(a, index), b: await leafOf(b, index) }
}

/** Seconds by which replicas of a log may differ in their checkpoints' times. */
const replicaSeconds = 600

/** Whether a log signed fewer leaves later: it showed a reader an old state as a new one. */
export const wentBack = (a, b) => {
  const [fewer, more] = a.tree.size < b.tree.size ? [a.tree, b.tree] : [b.tree, a.tree]
  return fewer.size < more.size && fewer.time > more.time + replicaSeconds
}

/**
 * Whether the key of a story is retired by now. The leaves shared by both stories decide; without an entry there, the
 * document does.
 */
export const isUnderRetiredKey = async ({ place, tiles, tree }, shared) => {
  const events = await readKeys(place, tree, tiles).catch(() => [])
  const before = events.filter(({ index }) => index < shared)
  return !isInForce(before, tree.key, Date.now() / 1000)
}

/** Names of the given witnesses with valid cosignatures on both checkpoints. */
export const witnessesOfBoth = async (a, b, keys) => {
  const isOnBoth = async (key) => {
    const times = await Promise.all([a, b].map(({ note }) => cosignedAt(note, key)))
    return times.includes(undefined) ? [] : [key.split("+")[0]]
  }
  return (await Promise.all(keys.map(isOnBoth))).flat()
}

/** The claim of an opened leaf, and whether the ledger agrees. */
export const judge = async ({ commitment }, answers, rpc) => {
  for (const { record, salt } of answers.flatMap(({ outcomes }) => outcomes)) {
    if (commitment === undefined || (await sha256(bytesOf(salt), record)) !== commitment) continue
    const { ledger, outcome, transaction } = JSON.parse(record)
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getTransaction", params: { hash: transaction } })
    const answer = await fetch(rpc, { method: "POST", headers: { "content-type": "application/json" }, body })
    const { result } = await answer.json()
    const known = `${result.status}${result.ledger === undefined ? "" : ` in ledger ${result.ledger}`}`
    if (result.status === "NOT_FOUND" && !(ledger >= result.oldestLedger))
      return `${outcome} by ${transaction}; the ledger: ${known}, which decides nothing: it may have forgotten`
    const isPaid = result.status === "SUCCESS" && result.ledger === ledger
    const agrees = isPaid === (outcome === "settled")
    return `${outcome} by ${transaction}; the ledger: ${known}, so this story is ${agrees ? "true" : "false"}`
  }
  return undefined
}

const main = async (args) => {
  const { readFile } = await import("node:fs/promises")
  const json = async (file) => JSON.parse(await readFile(file, "utf8"))
  const keys = args.filter((_, at) => args[at - 1] === "--witness")
  const [placeA, placeB, didFile, rpc, ...answerFiles] = args.filter(
    (arg, at) => arg !== "--witness" && args[at - 1] !== "--witness"
  )
  const did = await json(didFile)
  const [a, b] = [await openStory(placeA, did), await openStory(placeB, did)]
  const differing = await compareStories(a, b)
  for (const { place, tree } of [a, b]) await checkAge(tree).catch(({ message }) => console.log(`${place}: ${message}`))
  if (differing === undefined && wentBack(a, b)) {
    console.log(`the log went back: it signed ${Math.min(a.tree.size, b.tree.size)} leaves after it had signed more`)
    process.exitCode = 1
    return
  }
  if (differing === undefined) return console.log(`one story: ${a.tree.size} and ${b.tree.size} leaves`)
  const answers = await Promise.all(answerFiles.map(json))
  console.log(`two stories, both signed by a key of ${did.id}: they share ${differing.index} leaves`)
  const both = [
    [placeA, differing.a, a],
    [placeB, differing.b, b]
  ]
  for (const [place, leaf, story] of both) {
    const opened = rpc === undefined ? undefined : await judge(leaf, answers, rpc)
    console.log(`leaf ${differing.index} of ${place}: ${leaf.hash}, ${opened ?? leaf.says}`)
    if (await isUnderRetiredKey(story, differing.index))
      console.log(`${place} is under a retired key, which may be stolen: it proves nothing against ${did.id}`)
  }
  for (const name of await witnessesOfBoth(a, b, keys))
    console.log(`the witness ${name} cosigned both: do not count on it`)
  process.exitCode = 1
}

if (globalThis.process?.argv[1]?.endsWith("two-stories.mjs")) await main(process.argv.slice(2))
