// Notifies systemd that the service is ready (`Type=notify`), through systemd's own program, because Node does not
// support Unix datagram sockets. Without a `NOTIFY_SOCKET`, systemd is not waiting and nothing runs.
import { Effect } from "effect"
import { execFile } from "node:child_process"
import process from "node:process"

/** Reports readiness with a status line. A failure is logged; systemd then ends the start by its own timeout. */
export const notifyReady = (status: string): Effect.Effect<void> =>
  (process.env["NOTIFY_SOCKET"] ?? "") === ""
    ? Effect.void
    : Effect.callback<void, Error>((resume) => {
        execFile("systemd-notify", ["--ready", `--status=${status}`], { timeout: 5_000 }, (error) =>
          resume(error === null ? Effect.void : Effect.fail(error))
        )
      }).pipe(Effect.catch((error) => Effect.logError("systemd could not be notified of readiness", error)))
