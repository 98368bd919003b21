// Which facilitator of this user runs here, and over which ledger: every one leaves a note in its state folder, and
// says in the user's own folder below the system's temporary one where that is. The one of `.tollkeeper` (or of the
// folder asked for) comes first, then the youngest; a note counts when the facilitator in it answers.
import { readdirSync, readFileSync, statSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"

export interface Found {
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

const readNote = (file: string): Found | undefined => {
  try {
    const { rpc, url } = JSON.parse(readFileSync(file, "utf8"))
    return typeof url === "string" ? { facilitator: url, ledger: rpc } : undefined
  } catch {
    return undefined
  }
}

const notesIn = (state: string): ReadonlyArray<Found> =>
  namesIn(join(state, "running")).flatMap((name) => readNote(join(state, "running", name)) ?? [])

const notesOfUser = (): ReadonlyArray<Found> => {
  const folder = join(tmpdir(), `tollkeeper-${userInfo().uid}`)
  return namesIn(folder)
    .filter((name) => /^\d+\.txt$/.test(name))
    .map((name) => join(folder, name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
    .flatMap((file) => notesIn(readFileSync(file, "utf8").trim()))
}

export const answers = (facilitator: string): Promise<boolean> =>
  fetch(`${facilitator}/health/ready`, { signal: AbortSignal.timeout(5_000) }).then(
    ({ ok }) => ok,
    () => false
  )

/** The first that answers; undefined when none does. With a folder, only those over it are asked. */
export const findFacilitator = async (state?: string): Promise<Found | undefined> => {
  const notes = state === undefined ? [...notesIn(".tollkeeper"), ...notesOfUser()] : notesIn(state)
  for (const note of notes) if (await answers(note.facilitator)) return note
  return undefined
}
