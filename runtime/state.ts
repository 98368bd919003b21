// The state folder: its files, and the processes that use it. The first start marks a folder. Only a marked folder is
// ever deleted, entry by entry: foreign files stay. A serving process writes an instance file into `running/`, readable
// only by this user, with its address and the key for operators' commands. The file may outlive a killed process, so it
// counts only while its process holds the file beside it.
import { Effect, Schema } from "effect"
import { createHash, randomUUID } from "node:crypto"
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import process from "node:process"
import { keptActsFile } from "../kernel/platform/Host.ts"
import { holderOfFolder } from "./platform/folderLock.ts"
import { heldFileOf, isHeld, tryHold } from "./platform/heldFile.ts"

/** Tollkeeper's entries of a state folder; nothing else in it is ever deleted. */
const MARK = "tollkeeper.json"
const own: ReadonlySet<string> = new Set([
  MARK,
  "running",
  "database",
  "database.lock",
  "database.held",
  "database.restoring",
  "ledger",
  "ledger.lock",
  "ledger.held",
  "state.lock",
  "state.held",
  "sponsor.seed",
  "receipts.seed",
  "receipts.checkpoint",
  "tools",
  "tools.lock",
  "tools.held",
  "tools-approvals",
  "tools-approvals-step.lock",
  "tools-approvals-step.held",
  "tools-decisions.jsonl",
  "tools-decisions.jsonl.before"
])

/** A process that serves over this folder. */
export interface Instance {
  /** In its own container, if it runs in one. */
  readonly pid: number
  readonly profile: string
  /** Whether it needs exclusive use of the folder. */
  readonly isAlone: boolean
  /** Absent without a listener. */
  readonly url?: string
  /** The RPC of its ledger, unless that may hold a secret. */
  readonly rpc?: string
  /** Which database it uses: `embedded`, or the first 16 hex of its URL's sha256. */
  readonly database: string
  /** The same for a person, without a secret. */
  readonly databaseName?: string
  /** Address and key for operators' commands. */
  readonly operators?: { readonly url: string; readonly key: string; readonly families: ReadonlyArray<string> }
}

/** The folder cannot be used as asked. */
export class StateRefused extends Schema.TaggedError<StateRefused>()("StateRefused", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

const attempt = <A>(what: string, work: () => A): Effect.Effect<A, StateRefused> =>
  Effect.try({ try: work, catch: (cause) => new StateRefused({ message: what, cause }) })

/** The nearest existing ancestor. */
const nearestExisting = (folder: string): string => (existsSync(folder) ? folder : nearestExisting(dirname(folder)))

/** Folder by folder: below `/proc`, where none can be made, Node's recursive call never ends. */
const makeFolder = (folder: string): void => {
  if (existsSync(folder)) {
    // Fails with the reason when it is a file.
    if (!statSync(folder).isDirectory()) mkdirSync(folder)
    return
  }
  makeFolder(dirname(folder))
  mkdirSync(folder, { mode: 0o700 })
}

/** Creates the folder, only for this user, and marks it. */
export const claimState = (folder: string) =>
  attempt(`the state folder ${folder} cannot be written`, () => {
    // Where nothing can be created, the system reports a missing folder; this yields the real reason.
    if (!existsSync(folder)) accessSync(nearestExisting(dirname(resolve(folder))), constants.W_OK)
    makeFolder(resolve(folder))
    const mark = join(folder, MARK)
    const text = { what: "State of Tollkeeper. `tollkeeper reset` deletes it.", format: 1 }
    // Written even when it exists, so that a read-only disk is reported before anything is opened.
    writeFileSync(mark, `${JSON.stringify(text)}\n`, { mode: 0o600 })
  })

/** Removes the mark, and the folder if it is empty, because the start failed. */
export const releaseState = (folder: string) =>
  Effect.sync(() => {
    rmSync(join(folder, MARK), { force: true })
    if (readdirSync(folder).length === 0) rmSync(folder, { recursive: true })
  })

/** Whether a process was ever started over the folder. */
export const isClaimed = (folder: string): boolean => existsSync(join(folder, MARK))

const readNote = (file: string): Instance | undefined => {
  if (!isHeld(heldFileOf(file))) return undefined
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Instance
  } catch {
    return undefined
  }
}

/** The processes that serve over the folder now. */
export const instancesOf = (folder: string): ReadonlyArray<Instance> => {
  const running = join(folder, "running")
  if (!existsSync(running)) return []
  return readdirSync(running)
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => readNote(join(running, name)) ?? [])
}

/** Writes an instance file of this process until the Scope closes, and deletes the files of dead processes. */
export const announce = (folder: string, note: Omit<Instance, "pid">) =>
  Effect.acquireRelease(
    attempt(`the state folder ${folder} cannot be written`, () => {
      const running = join(folder, "running")
      mkdirSync(running, { recursive: true, mode: 0o700 })
      for (const name of readdirSync(running).filter((name) => name.endsWith(".json")))
        if (readNote(join(running, name)) === undefined) rmSync(join(running, name), { force: true })
      // Processes in two containers may have the same pid.
      const file = join(running, `${process.pid}-${randomUUID()}.json`)
      const release = tryHold(heldFileOf(file))
      const whole: Instance = { pid: process.pid, ...note }
      writeFileSync(file, `${JSON.stringify(whole)}\n`, { mode: 0o600 })
      return () => {
        rmSync(file, { force: true })
        release?.()
      }
    }),
    (release) => Effect.sync(release)
  )

/** Identifies a database in an instance file without its address. */
export const databaseMark = (url: string | undefined): string =>
  url === undefined || url === "" ? "embedded" : createHash("sha256").update(url).digest("hex").slice(0, 16)

/** Describes a running process. */
export const describeInstance = ({ pid, url }: Instance): string =>
  `process ${pid}${url === undefined ? "" : `, ${url}`}`

/** Processes that hold the folder's locks. A process that starts or ends is not in `running/`. */
const holdersOf = (folder: string): ReadonlyArray<string> =>
  [...["database", "ledger", "state"].map((name) => join(folder, name)), folder].flatMap(
    (held) => holderOfFolder(held) ?? []
  )

interface Deletion {
  /** Entries that are ours. */
  readonly entries: ReadonlyArray<string>
  /** Foreign entries, which stay. */
  readonly foreign: ReadonlyArray<string>
}

/** The entries that a reset of the folder would delete; fails for a folder without our mark, or in use. */
export const planReset = Effect.fnUntraced(function* (folder: string) {
  if (!existsSync(folder)) return undefined
  const refuse = (message: string) => new StateRefused({ message })
  if (!statSync(folder).isDirectory()) return yield* refuse(`${folder} is not a folder; name one with --state DIR`)
  const entries = (yield* attempt(`${folder} cannot be read`, () => readdirSync(folder))).filter(
    (name) => name !== keptActsFile
  )
  if (entries.length > 0 && !entries.includes(MARK)) {
    const hint = "name the folder that `start` was given with --state DIR"
    return yield* refuse(`${folder} does not carry Tollkeeper's mark (${MARK}), so nothing was deleted; ${hint}`)
  }
  const running = [...instancesOf(folder).map(describeInstance), ...holdersOf(folder)]
  if (running[0] !== undefined)
    return yield* refuse(`a Tollkeeper runs over ${folder} (${running[0]}); stop it first, then reset`)
  const plan: Deletion = {
    entries: entries.filter((name) => own.has(name)),
    foreign: entries.filter((name) => !own.has(name))
  }
  return plan
})

/** Deletes our entries, the mark last; then the folder, if it is empty. */
export const carryOutReset = (folder: string, { entries, foreign }: Deletion) =>
  attempt(`${folder} cannot be deleted`, () => {
    for (const name of [...entries.filter((name) => name !== MARK), MARK])
      rmSync(join(folder, name), { recursive: true, force: true })
    const isEmpty = foreign.length === 0 && !existsSync(join(folder, keptActsFile))
    if (isEmpty) rmSync(folder, { recursive: true, force: true })
    for (const kind of ["lock", "held"]) rmSync(join(dirname(folder), `${basename(folder)}.${kind}`), { force: true })
  })
