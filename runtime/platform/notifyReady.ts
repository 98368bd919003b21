// Notifies systemd that the service is ready (`Type=notify`), by its own program: Node has no datagram sockets of the
// system. Without a `NOTIFY_SOCKET` there is no systemd that waits, and nothing is run.
import { Effect } from "effect"
import { execFile } from "node:child_process"
import process from "node:process"

/** Reports readiness with a status line; a failure is logged, and systemd ends the start by its own timeout. */
export const notifyReady = (status: string): Effect.Effect<void> =>
  (process.env["NOTIFY_SOCKET"] ?? "") === ""
    ? Effect.void
    : Effect.callback<void, Error>((resume) => {
        execFile("systemd-notify", ["--ready", `--status=${status}`], { timeout: 5_000 }, (error) =>
          resume(error === null ? Effect.void : Effect.fail(error))
        )
      }).pipe(Effect.catch((error) => Effect.logError("systemd could not be notified of readiness", error)))
