// Restricts the ledger's folder to its user: no other user of the machine may read its content, which includes the key
// of the HTTPS listener. An existing folder is restricted as well, regardless of its permissions.
import { Effect, FileSystem } from "effect"

const folderMode = 0o700

/** Makes the folder, or restricts the existing one. */
export const privateFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory(folder, { recursive: true, mode: folderMode })
  yield* files.chmod(folder, folderMode)
})
