import os,time,sys
os.environ["OMP_NUM_THREADS"]="1"
import numpy, rabitqlib, svs
D=os.environ["REPRISE_INDEX_DATA"]+"/"
W=[10,12,16,20,24,32,48,64,96,128,192]
def run(name, f, truth, n, until=0.2):
    for ef in W:
        c=time.process_time(); w=time.perf_counter(); p=0
        while p==0 or time.perf_counter()-w<until:
            found=f(ef); p+=1
        c=time.process_time()-c
        r=sum(len(set(a)&set(b)) for a,b in zip(found.tolist(), truth[:,:10].tolist()))/truth[:,:10].size
        print(f"{name} ef {ef} recall {r:.4f} {c/p/n*1e6:.1f} CPU us",flush=True)
        if r>0.997: break
for s in sys.argv[1:]:
    b=numpy.load(D+s+".base.npy");q=numpy.load(D+s+".queries.npy");t=numpy.load(D+s+".truth.npy")
    for deg in (32,64,96):
        i=rabitqlib.SymqgIndex(b.shape[1],deg,"l2")
        c=time.process_time(); i.build(b,200,1); print(s,"symqg deg",deg,"build cpu",time.process_time()-c)
        i.save("symqg.bin"); print("bytes/vec",os.path.getsize("symqg.bin")/len(b))
        r=i.search_batch(q,10,10,1)
        which=0 if r[0].dtype.kind in 'iu' else 1
        run(f"{s} symqg{deg}", lambda ef:i.search_batch(q,10,ef,1)[which], t, len(q))
os.unlink("symqg.bin")
