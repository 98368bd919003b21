// The ledger's folder is its user's alone: what is in it, the key of the HTTPS listener included, is for no other user
// of the machine. A folder that is there already is tightened, whatever rights it was made with.
import { Effect, FileSystem } from "effect"

const folderMode = 0o700

/** Makes the folder, or tightens the one that is there. */
export const privateFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory(folder, { recursive: true, mode: folderMode })
  yield* files.chmod(folder, folderMode)
})
