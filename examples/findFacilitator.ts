// Finds this user's running facilitator and its ledger. Each facilitator writes its addresses to its state folder, and
// registers that folder in the user's folder below the system's temporary one. The facilitator of `.tollkeeper` (or of
// the given folder) comes first, then the youngest. An entry counts if its facilitator is ready, or becomes ready
// within a minute.
import { readdirSync, readFileSync, statSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"

export interface FacilitatorNote {
  readonly facilitator: string
  /** Absent when the ledger is not on this machine. */
  readonly ledger: string | undefined
}

const namesIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

const readNote = (file: string): FacilitatorNote | undefined => {
  try {
    const { rpc, url } = JSON.parse(readFileSync(file, "utf8"))
    return typeof url === "string" ? { facilitator: url, ledger: rpc } : undefined
  } catch {
    return undefined
  }
}

const notesIn = (state: string): ReadonlyArray<FacilitatorNote> =>
  namesIn(join(state, "running")).flatMap((name) => readNote(join(state, "running", name)) ?? [])

const notesOfUser = (): ReadonlyArray<FacilitatorNote> => {
  const folder = join(tmpdir(), `tollkeeper-${userInfo().uid}`)
  return namesIn(folder)
    .filter((name) => /^\d+\.txt$/.test(name))
    .map((name) => join(folder, name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
    .flatMap((file) => notesIn(readFileSync(file, "utf8").trim()))
}

/** Time to become ready for a facilitator that answers: it has just started, or its machine is busy. */
const patienceMillis = 60_000
const askMillis = 5_000

type Readiness = "ready" | "not ready" | "silent"

const readinessOf = (facilitator: string): Promise<Readiness> =>
  fetch(`${facilitator}/health/ready`, { signal: AbortSignal.timeout(askMillis) }).then(
    ({ ok }) => (ok ? "ready" : "not ready"),
    // A connection without an answer is a busy facilitator; a refused connection means that it is not running.
    (error) => (error instanceof DOMException && error.name === "TimeoutError" ? "not ready" : "silent")
  )

/** True when it is ready within a minute; false immediately if the connection is refused. */
export const isReady = async (facilitator: string): Promise<boolean> => {
  const until = Date.now() + patienceMillis
  for (;;) {
    const readiness = await readinessOf(facilitator)
    if (readiness !== "not ready" || Date.now() > until) return readiness === "ready"
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** The first ready facilitator, else the first to become ready; undefined without one. With a folder, only its own. */
export const findFacilitator = async (state?: string): Promise<FacilitatorNote | undefined> => {
  const notes = state === undefined ? [...notesIn(".tollkeeper"), ...notesOfUser()] : notesIn(state)
  const busy: Array<FacilitatorNote> = []
  for (const note of notes) {
    const readiness = await readinessOf(note.facilitator)
    if (readiness === "ready") return note
    if (readiness === "not ready") busy.push(note)
  }
  for (const note of busy) if (await isReady(note.facilitator)) return note
  return undefined
}
