-- Ends a script whose entries came from another Redis. Needs the local `here`; ARGV[1] is the expected one.

if ARGV[1] ~= here then return redis.error_reply(OTHER_REDIS .. ' another Redis gave these entries') end
