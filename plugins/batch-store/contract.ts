// What the channel store shares with sellers that claim by themselves.
export { claimPauseSeconds } from "./claimPause.ts"
