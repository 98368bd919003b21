// The user who gives a command, for the audit trail: behind sudo the person, not root.
import { userInfo } from "node:os"
import process from "node:process"

const nameMax = 64

export const osUser = (): string => {
  const sudo = process.env["SUDO_USER"]
  if (sudo !== undefined && sudo !== "") return sudo.slice(0, nameMax)
  try {
    return userInfo().username.slice(0, nameMax)
  } catch {
    // A container's user may only have a number.
    return `user ${process.getuid?.() ?? "unknown"}`
  }
}
