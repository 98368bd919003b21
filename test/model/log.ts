// A model of the log between its facilitator, a witness and two readers. The facilitator is honest and its database may
// be restored from a backup, with or without its state folder; in the other world the operator lies. A thief signs with
// the retired key. The witness has two processes on one file, which die at any step. The tree, the proofs of
// consistency and the dates of keys are the product's own code; the order of steps follows `witness.mjs`, `Epochs.ts`
// and `collectCosignatures.ts`.
import { createHash } from "node:crypto"
import { checkConsistency, isInForce } from "../../examples/receipts/verify.mjs"
import {
  consistencyPath,
  leafHash,
  type ReadNode,
  rootOfComplete,
  rootOfRange
} from "../../plugins/receipts/log/merkle.ts"
import { type Model, type Step, type Visited, visit } from "./visit.ts"

const rules = [
  "the witness signs only a continuation",
  "the witness stores before it answers",
  "one process of the witness signs at a time",
  "the witness refuses a retired key",
  "the log asks its witness before it publishes",
  "the witness signs an epoch only if it continues the newest",
  "readers require the witness's line"
] as const
type Rule = (typeof rules)[number]

/** Leaves, one letter each: outcomes `a` and `b`; `r` retires the first key and announces the second. */
type Story = string
type Key = "first" | "second"
/** Leaves of a shown story, and of the honest log. */
const [leavesMax, ownLeavesMax] = [3, 2]

const sha256 = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest()
const reading =
  (story: Story): ReadNode =>
  ({ height, index }) => {
    const letters = [...story.slice(index * 2 ** height, (index + 1) * 2 ** height)]
    return rootOfComplete(
      sha256,
      letters.map((letter) => leafHash(sha256, new TextEncoder().encode(letter)))
    )
  }
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")
const treeOf = (story: Story) => ({
  size: story.length,
  root: hex(rootOfRange(sha256, reading(story), 0, story.length))
})
const storiesOf = (length: number): ReadonlyArray<Story> =>
  length === 0 ? [""] : storiesOf(length - 1).flatMap((story) => ["a", "b", "r"].map((letter) => story + letter))
const stories = Array.from({ length: leavesMax }, (_, index) => storiesOf(index + 1)).flat()

/** Pairs for which some proof convinces the verifier: of the newer tree, or of an honest continuation. */
const convincing = new Set<string>()
for (const older of stories)
  for (const newer of stories.filter(({ length }) => length >= older.length))
    for (const shown of [newer, older + newer.slice(older.length)]) {
      const proof = consistencyPath(sha256, reading(shown), older.length, newer.length).map(hex)
      await checkConsistency(treeOf(older), treeOf(newer), proof).then(
        () => void convincing.add(`${older} ${newer}`),
        () => {}
      )
    }
const continues = (newer: Story, older: Story): boolean => older === "" || convincing.has(`${older} ${newer}`)

interface Note {
  readonly epoch: number
  readonly story: Story
  readonly key: Key
  /** The leaves of the former epoch that this one continues. */
  readonly previous: Story
  readonly isStrange?: boolean
}

interface State {
  readonly epoch: number
  readonly story: Story
  readonly previous: Story
  /** The checkpoint in the state folder. */
  readonly mark: Story
  readonly backup?: { readonly story: Story; readonly epoch: number; readonly previous: Story }
  readonly isStopped: boolean
  /** Stories that the witness has stored, by epoch. */
  readonly signed: ReadonlyArray<Story>
  /** Requests in the witness's processes, with the state that each has read. */
  readonly requests: ReadonlyArray<{
    readonly note: Note
    readonly read: ReadonlyArray<Story>
    readonly isStored: boolean
  }>
  /** Truth: cosigned and published checkpoints, as `epoch story`, and the readers' latest. */
  readonly lines: ReadonlyArray<string>
  readonly published: ReadonlyArray<string>
  readonly readers: readonly [string, string]
}

const named = (epoch: number, story: Story): string => `${epoch} ${story}`
const disagree = (a: string, b: string): boolean => {
  const [[epochA, storyA = ""], [epochB, storyB = ""]] = [a.split(" "), b.split(" ")] as const
  return epochA === epochB && !storyA.startsWith(storyB) && !storyB.startsWith(storyA)
}
/** Whether a line of the first epoch has leaves that its end does not have. */
const isDropped = (line: string, previous: Story): boolean =>
  line.startsWith("0 ") && !previous.startsWith(line.slice(2))
const isForked = (all: ReadonlyArray<string>): boolean =>
  all.some((one, at) => all.slice(at).some((b) => disagree(one, b)))

const exploreWorld = (broken: string | undefined, isLiar: boolean): Visited => {
  const has = (rule: Rule) => rule !== broken

  const keyOf = (story: Story): Key => (story.includes("r") ? "second" : "first")
  /** By the document, which the facilitator publishes. */
  const mayKey = ({ story }: State, key: Key): boolean => {
    const isRetired = keyOf(story) === "second"
    return isInForce([], { id: key, validFrom: 0, validUntil: isRetired && key === "first" ? 1 : Infinity }, 2)
  }

  /** Whether the witness cosigns a note, given the contents of its file. */
  const mayCosign = (state: State, { epoch, key, previous, story }: Note, read: ReadonlyArray<Story>): boolean => {
    if (!mayKey(state, key) && has("the witness refuses a retired key")) return false
    const known = read[epoch]
    if (known === undefined && epoch > 0) {
      const newest = read[epoch - 1]
      const isFurther = newest === undefined || (previous.length >= newest.length && continues(previous, newest))
      return isFurther || !has("the witness signs an epoch only if it continues the newest")
    }
    const isOver = epoch < read.length - 1
    if (isOver) return false
    return continues(story, known ?? "") || !has("the witness signs only a continuation")
  }

  const noteOf = ({ epoch, previous, story }: State): Note => ({ epoch, story, previous, key: keyOf(story) })

  /** A process of the witness receives a note and reads the file. */
  const request = (state: State, note: Note): State | undefined =>
    state.requests.length < 2 && (state.requests.length === 0 || !has("one process of the witness signs at a time"))
      ? { ...state, requests: [...state.requests, { note, read: state.signed, isStored: false }] }
      : undefined

  const witnessSteps = function* (state: State): Iterable<Step<State>> {
    for (const [at, { isStored, note, read }] of state.requests.entries()) {
      const rest = { ...state, requests: state.requests.toSpliced(at, 1) }
      const did = `the witness, ${named(note.epoch, note.story)}`
      yield { did: `${did}: dies`, to: rest }
      const signed = state.signed.slice(0, note.epoch)
      signed[note.epoch] = note.story
      const lines = [...new Set([...state.lines, named(note.epoch, note.story)])].toSorted()
      if (isStored) {
        const isShort = note.epoch > 0 && state.lines.some((line) => isDropped(line, note.previous))
        const isStolen = note.key !== keyOf(state.story) && note.key === "first" && note.isStrange === true
        const broken = isShort
          ? "an epoch drops cosigned leaves"
          : isStolen
            ? "it cosigned under a retired key"
            : undefined
        yield { did: `${did}: answers`, to: { ...rest, lines }, broken }
      } else if (!mayCosign(state, note, read)) {
        const isOwn =
          !isLiar && note.epoch === state.epoch && note.story === state.story && note.key === keyOf(note.story)
        yield { did: `${did}: refuses`, to: { ...rest, isStopped: state.isStopped || isOwn } }
      } else if (has("the witness stores before it answers")) {
        const requests = state.requests.with(at, { note, read, isStored: true })
        yield { did: `${did}: stores`, to: { ...state, signed, requests } }
      } else {
        yield { did: `${did}: answers, dies`, to: { ...rest, lines } }
        yield { did: `${did}: answers, stores`, to: { ...rest, lines, signed } }
      }
    }
  }

  const facilitatorSteps = function* (state: State): Iterable<Step<State>> {
    const { backup, epoch, isStopped, mark, previous, requests, story } = state
    if (story.length < ownLeavesMax)
      for (const leaf of story.includes("r") ? ["a", "b"] : ["a", "b", "r"])
        yield { did: `appends ${leaf}`, to: { ...state, story: story + leaf } }
    if (backup === undefined) yield { did: "is backed up", to: { ...state, backup: { story, epoch, previous } } }
    // A restore that loses a key's rotation is left out.
    else if (requests.length === 0 && story.includes("r") === backup.story.includes("r") && epoch === backup.epoch)
      for (const own of [mark, ""])
        yield {
          did: `is restored${own === "" ? " with its state folder" : ""}`,
          to: { ...state, ...backup, mark: own, isStopped: false }
        }
    const isBehind = mark !== "" && !story.startsWith(mark)
    const begins = { ...state, epoch: epoch + 1, story: story.includes("r") ? "r" : "", mark: "", isStopped: false }
    if (isBehind && epoch < 1) yield { did: "begins an epoch", to: { ...begins, previous: mark } }
    if (isStopped && epoch < 1)
      yield { did: "the operator begins an epoch", to: { ...begins, previous: state.signed[epoch] ?? story } }
    if (isStopped || isBehind || story === "") return
    const asked = requests.length === 0 ? request(state, noteOf(state)) : undefined
    if (asked !== undefined) yield { did: `asks the witness for ${named(epoch, story)}`, to: asked }
    const isCosigned = state.lines.includes(named(epoch, story))
    if (isCosigned || !has("the log asks its witness before it publishes")) {
      const published = [...new Set([...state.published, named(epoch, story)])].toSorted()
      yield { did: `publishes ${named(epoch, story)}`, to: { ...state, published, mark: story } }
    }
  }

  /** Notes of a stranger: of a lying operator with the key in force, or of a thief with the retired one. */
  const strangeSteps = function* (state: State): Iterable<Step<State>> {
    const key: Key = isLiar ? keyOf(state.story) : "first"
    if (!isLiar && keyOf(state.story) === "first") return
    const strange = isLiar ? stories.filter((one) => !one.includes("r")) : ["b"]
    for (const story of strange) {
      const to = request(state, { epoch: state.epoch, story, key, previous: state.previous, isStrange: true })
      if (to !== undefined) yield { did: `a stranger shows the witness ${story}`, to }
    }
    for (const story of strange) yield* readerSteps(state, named(state.epoch, story), key)
  }

  const readerSteps = function* (state: State, shown: string, key: Key): Iterable<Step<State>> {
    const isCosigned = state.lines.includes(shown) || !has("readers require the witness's line")
    if (!isCosigned || !mayKey(state, key)) return
    for (const at of [0, 1] as const) {
      // Each reader remembers its latest checkpoint.
      if (disagree(state.readers[at], shown)) continue
      const readers = state.readers.with(at, shown) as unknown as State["readers"]
      yield { did: `reader ${at} accepts ${shown}`, to: { ...state, readers } }
    }
  }

  const stepsOf = function* (state: State): Iterable<Step<State>> {
    yield* witnessSteps(state)
    if (!isLiar) yield* facilitatorSteps(state)
    yield* strangeSteps(state)
    if (!isLiar && !has("readers require the witness's line"))
      for (const shown of state.published) yield* readerSteps(state, shown, keyOf(state.story))
  }

  const issueOf = ({ lines, published, readers }: State): string | undefined => {
    if (isForked(lines)) return "the witness cosigned two stories"
    if (isForked(readers)) return "two readers accepted two stories"
    if (!isLiar && isForked(published)) return "the log published a fork"
    return undefined
  }

  const start: State = {
    epoch: 0,
    story: "",
    previous: "",
    mark: "",
    isStopped: false,
    signed: [],
    requests: [],
    lines: [],
    published: [],
    readers: ["0 ", "0 "]
  }
  return visit(start, stepsOf, issueOf)
}

const explore = (broken?: string): Visited => {
  const visited = [exploreWorld(broken, false), exploreWorld(broken, true)]
  return { states: visited[0]!.states + visited[1]!.states, broken: visited[0]!.broken ?? visited[1]!.broken }
}

export const log: Model = { name: "the log between facilitator, witness and reader", rules, explore }
